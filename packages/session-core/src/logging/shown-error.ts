/** Formats an error for a log line. Quotes the message, because it may contain text that a client sent. */
export function shownError(error: unknown): string {
  if (!(error instanceof Error)) return JSON.stringify(String(error));
  const { name, message } = error;
  // For a host with several addresses, Node.js fails with one error per address and no message of its own.
  if (message === '' && error instanceof AggregateError) return error.errors.map(shownError).join(', ');
  return message === '' ? name : `${name}: ${JSON.stringify(message)}`;
}

/** Formats an error like `shownError()`, with the frames of its stack below. */
export function shownStack(error: unknown): string {
  const { stack, message } = error instanceof Error ? error : {};
  if (typeof stack !== 'string' || message === undefined) return shownError(error);
  // Search behind the message, because the message itself may look like frames.
  const begin = stack.indexOf(message);
  const frames = begin < 0 ? -1 : stack.indexOf('\n    at ', begin + message.length);
  return frames < 0 ? shownError(error) : shownError(error) + stack.slice(frames);
}

/** Returns a plain word, such as an id, unchanged, and quotes any other text. */
export function shownText(text: string): string {
  return /^[\w.:-]+$/.test(text) ? text : JSON.stringify(text);
}
