export type JsonValue = null | boolean | number | string | JsonValue[] | { [name: string]: JsonValue };

export function membersOf(value: JsonValue | undefined): Readonly<Record<string, JsonValue>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
}

/** How much of a value is read. The value of an attribute is foreign data, and must not cost more than its length. */
export const READING_LIMITS = {
  bytes: 8 * 1024 * 1024,
  depth: 200,
  /** Objects, fields, elements and class descriptions, each as often as it is read. */
  steps: 1_000_000,
};

export type ReadingLimits = Readonly<typeof READING_LIMITS>;

/** Bytes that are no value, that end too early, or that are more than the limits allow. Stays in this folder. */
export class UnreadableValueError extends Error {
  override readonly name = 'UnreadableValueError';
}
