import { createHash } from 'node:crypto';

/**
 * The SHA-1 of a text as `redis.sha1hex` returns it: the only hash that scripts have. A collision would at most lose an
 * update of an attribute that has held both texts. All known ways to make one take bytes that are not UTF-8, and texts
 * of attributes are UTF-8.
 */
export function hashOfText(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}
