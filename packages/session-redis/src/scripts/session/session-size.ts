import { type ContentBounds, isOwnAttribute } from '@nest-session/core/internal';
import type { AttributeChanges } from '@nest-session/core/store';
import { DataKey } from '../../encryption/data-key.js';

// The bytes of the attributes are the millions of a size, and their number is the rest: one number, which is exact in Lua.
// No call of a script sets half as many attributes.
const BYTE = 1_000_000;
// Stand for Infinity.
const ANY_NUMBER = 400_000;
const ANY_BYTES = 2 ** 32;

/** Whether a session has bounds at all. */
export function isBounded(bounds: ContentBounds | undefined): bounds is ContentBounds {
  return bounds !== undefined && (bounds.maxAttributes < ANY_NUMBER || bounds.maxSessionSize < ANY_BYTES);
}

/** The largest size within these bounds. */
export function largestSize({ maxAttributes, maxSessionSize }: ContentBounds): number {
  return Math.min(maxSessionSize, ANY_BYTES) * BYTE + Math.min(maxAttributes, ANY_NUMBER);
}

/** The size of the attributes that are set, as they are before an encryption, without the library's own. */
export function sizeOf(attributes: AttributeChanges): number {
  let size = 0;
  for (const [name, text] of attributes) {
    if (text === null || isOwnAttribute(name)) continue;
    size += (Buffer.byteLength(name) + DataKey.bytesIn(text)) * BYTE + 1;
  }
  return size;
}
