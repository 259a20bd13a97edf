/**
 * What an update makes of the value of an attribute; undefined removes it. `read` gives the update a copy of its own.
 * @throws TypeError when the update has changed the copy in place and returns nothing: that would lose the attribute
 */
export function updatedValue(
  name: string,
  update: (current: unknown) => unknown,
  read: () => unknown,
  textOf: (value: unknown) => string,
): unknown {
  const copy = read();
  const value = update(copy);
  const isObject = typeof copy === 'object' && copy !== null;
  if (value === undefined && isObject && textOf(copy) !== textOf(read())) {
    throw new TypeError(
      `The update of session attribute ${JSON.stringify(name)} has changed the value in place and returned nothing, which ` +
        'would remove the attribute: return the changed value, or null to remove it',
    );
  }
  return value ?? undefined;
}
