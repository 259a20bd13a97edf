/** The user that Redis has without a configuration, which takes every password. */
export const ALL_RIGHTS = { username: 'default', password: 'any' } as const;

/**
 * The address for connections that do more than the library does, such as for notifications of the application. Unless
 * it names a user, they log in as the one with all rights, also in `npm run test:acl`.
 */
export function withAllRights(url: string): string {
  const address = new URL(url);
  if (address.username === '') Object.assign(address, ALL_RIGHTS);
  return address.href;
}
