import { VISITOR_PREFIX } from './own-attributes.js';
import type { KeptAttributes } from './session-change.js';

export const NOT_SIGNED_IN =
  'Nobody was signed in: the session had ended in the meantime, or another request had changed its id';

/** Whether a sign-in keeps an attribute, and lets later saves of the old id write it. */
export function isKept(name: string, { only, butNot }: KeptAttributes): boolean {
  if (only) return only.includes(name);
  return !name.startsWith(VISITOR_PREFIX) && !butNot.includes(name);
}

/** @throws TypeError for a name by which a store could not find the session: half of a surrogate pair has no UTF-8 */
export function assertPrincipalName(name: unknown): void {
  if (typeof name !== 'string' || name === '' || /\p{Surrogate}/u.test(name)) {
    throw new TypeError('The name of a principal is a non-empty string of well-formed Unicode');
  }
}
