import { createHash } from 'node:crypto';

/** What stands in keys for the value of an index, such as the name of a principal. */
export function hashOfValue(value: string): string {
  return createHash('sha256').update(value).digest('base64url');
}
