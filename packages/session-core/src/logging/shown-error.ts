/** What stands in a log line for a value that has no text, such as an object without a prototype. */
const NO_TEXT = 'a value without a text';

export function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return NO_TEXT;
  }
}

/** Quotes the message, because it may contain text that a client sent. Never throws. */
export function shownError(error: unknown): string {
  try {
    return shown(error);
  } catch {
    return NO_TEXT;
  }
}

export function shownStack(error: unknown): string {
  try {
    return shownError(error) + framesOf(error);
  } catch {
    return shownError(error);
  }
}

export function shownText(text: string): string {
  return /^[\w.:-]+$/.test(text) ? text : JSON.stringify(text);
}

function shown(error: unknown): string {
  if (!(error instanceof Error)) return JSON.stringify(textOf(error));
  const { name, message } = error;
  // For a host with several addresses, Node.js fails with one error per address and no message of its own.
  if (message === '' && error instanceof AggregateError) return error.errors.map(shownError).join(', ');
  return message === '' ? name : `${name}: ${JSON.stringify(message)}`;
}

function framesOf(error: unknown): string {
  const { stack, message } = error instanceof Error ? error : {};
  if (typeof stack !== 'string' || message === undefined) return '';
  // Search behind the message, because the message itself may look like frames.
  const begin = stack.indexOf(message);
  const frames = begin < 0 ? -1 : stack.indexOf('\n    at ', begin + message.length);
  return frames < 0 ? '' : stack.slice(frames);
}
