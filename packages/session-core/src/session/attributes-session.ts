import type { BoundedSession } from './session-bounds.js';
import type { StoredAttributes } from './stored-attributes.js';

/** The session whose attributes are tracked. */
export interface AttributesSession extends BoundedSession {
  /** The attributes that the store has. */
  readonly storedAttributes: StoredAttributes;
  /** Whether the store does not have the session yet. */
  readonly isNew: boolean;
}
