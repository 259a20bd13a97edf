/** An error as a log line shows it: its message, which may contain what a client has sent, is quoted. */
export function shownError(error: unknown): string {
  if (!(error instanceof Error)) return JSON.stringify(String(error));
  const { name, message } = error;
  // For a host with several addresses, Node.js fails with one error per address and no message of its own.
  if (message === '' && error instanceof AggregateError) return error.errors.map(shownError).join(', ');
  return message === '' ? name : `${name}: ${JSON.stringify(message)}`;
}

/** The same, with the frames of its stack below. */
export function shownStack(error: unknown): string {
  const { stack, message } = error instanceof Error ? error : {};
  if (typeof stack !== 'string' || message === undefined) return shownError(error);
  // Looked for behind the message: it may look like frames itself.
  const begin = stack.indexOf(message);
  const frames = begin < 0 ? -1 : stack.indexOf('\n    at ', begin + message.length);
  return frames < 0 ? shownError(error) : shownError(error) + stack.slice(frames);
}

/** A text as it is when it is a plain word, such as an id, and otherwise quoted. */
export function shownText(text: string): string {
  return /^[\w.:-]+$/.test(text) ? text : JSON.stringify(text);
}
