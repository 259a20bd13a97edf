import type { OptionReader } from '../option-reading/option.reader.js';
import type { SessionBounds } from '../session/session-bounds.js';

/**
 * Options that bound what a session may hold. A change that would exceed one throws a `SessionBoundError`, 413. What is
 * stored already stays readable, and may be changed as long as it does not grow. What other requests store at the same
 * time counts as well. With `security: 'strict'`, and none of them set, a session in which nobody is signed in may hold
 * 32 attributes and 16384 bytes.
 */
export interface BoundsOptions {
  /** How many attributes a session may have, at most 10000; the library's own do not count. @default 256 */
  maxAttributes?: number;
  /** Bytes that the text of one attribute may take. @default 65536 */
  maxAttributeSize?: number;
  /**
   * Bytes that the names and texts of all attributes of a session may take; the library's own do not count.
   * @default maxAttributeSize * 4
   */
  maxSessionSize?: number;
}

// Bytes. Names stand in the source of the application, and nobody needs a longer one.
const LONGEST_NAME = 256;
// More would not fit into the arguments of one call, and each costs every load.
const MOST_ATTRIBUTES = 10_000;
// Redis takes no larger value.
const LARGEST = 512 * 1024 * 1024;

// Bytes. Room for what a visitor has chosen and typed.
const OF_VISITORS = 16_384;

/** What a session without a principal may hold in strict mode, unless the application has set bounds. */
export function boundsOfVisitors({ maxAttributes, maxAttributeSize, maxSessionSize }: BoundsOptions) {
  if ([maxAttributes, maxAttributeSize, maxSessionSize].some((each) => each !== undefined)) return undefined;
  return {
    maxAttributes: 32,
    maxAttributeNameSize: LONGEST_NAME,
    maxAttributeSize: OF_VISITORS,
    maxSessionSize: OF_VISITORS,
  };
}

/** Reads the bounds. */
export function readBounds(reader: OptionReader): SessionBounds {
  const maxAttributes = reader.integer('maxAttributes', 256, { atLeast: 1, atMost: MOST_ATTRIBUTES });
  const maxAttributeSize = reader.integer('maxAttributeSize', 65_536, { atLeast: 1, atMost: LARGEST });
  const maxSessionSize = reader.integer('maxSessionSize', Math.min(4 * maxAttributeSize, LARGEST), {
    atLeast: 1,
    atMost: LARGEST,
  });
  return { maxAttributes, maxAttributeNameSize: LONGEST_NAME, maxAttributeSize, maxSessionSize };
}
