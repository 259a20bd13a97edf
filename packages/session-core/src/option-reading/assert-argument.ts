/** @throws TypeError unless it is a text. `what`: the argument, such as `The id of a session` */
export function assertString(what: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw new TypeError(`${what} must be a string, not ${shownType(value)}`);
}

export function assertObject(what: string, value: unknown): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new TypeError(`${what} must be an object, not ${shownType(value)}`);
}

function shownType(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
