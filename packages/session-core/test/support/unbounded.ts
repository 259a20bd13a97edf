import type { SessionBounds } from '../../src/session/session-bounds.js';

/** The bounds of a session that may hold anything. */
export const UNBOUNDED: SessionBounds = {
  maxAttributes: Infinity,
  maxAttributeNameSize: Infinity,
  maxAttributeSize: Infinity,
  maxSessionSize: Infinity,
};
