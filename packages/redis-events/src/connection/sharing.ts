/** How many modules use a connection, where that is not one. */
const users = new WeakMap<object, number>();

/** One module more uses a connection. */
export function share(connection: object): void {
  users.set(connection, (users.get(connection) ?? 1) + 1);
}

/** Whether more than one module uses it. */
export function isShared(connection: object): boolean {
  return (users.get(connection) ?? 1) > 1;
}

/** One module less uses it. Returns whether none does any more. */
export function isReleased(connection: object): boolean {
  const left = (users.get(connection) ?? 1) - 1;
  users.set(connection, left);
  return left === 0;
}

/** From now on, a connection belongs to one module again. */
export function endSharing(connection: object): void {
  users.delete(connection);
}
