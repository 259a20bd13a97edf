/** Data as JSON has it. */
export type PlainValue = null | boolean | number | string | PlainValue[] | { [name: string]: PlainValue };

/** The members of an object, or undefined for any other value. */
export function membersOf(value: PlainValue | undefined): Readonly<Record<string, PlainValue>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
}
