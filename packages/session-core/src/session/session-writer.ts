import type { SecurityEvents } from '../security-events/security-events.js';
import type { WarnOnce } from '../logging/warn-once.js';
import type { AttributeSerializer } from './attribute.serializer.js';
import type { ConcurrentUpdates } from './concurrent-updates.js';
import type { SessionBounds } from './session-bounds.js';
import type { CreateSession, DeleteSession, SessionChange, UpdateSession, WriteReply } from './session-change.js';
import type { SessionIndexes } from './session-indexes.js';
import type { MaxSessions } from './session-limit.js';
import type { SessionKey } from './session-token.js';
import type { SessionTimeouts } from './session-timeouts.js';

/** A change that a session object asks its repository to write. */
export type SessionSave = CreateSession | UpdateSession | DeleteSession;

/** What a session needs from its repository. */
export interface SessionWriter {
  readonly serializer: AttributeSerializer;
  /** Warns of each attribute once that cannot be decoded. */
  readonly warnings: WarnOnce;
  readonly indexes: SessionIndexes;
  readonly bounds: SessionBounds;
  /** Those of a session in which nobody is signed in; undefined: the same. */
  readonly visitorBounds?: SessionBounds | undefined;
  /** The timeouts of sessions in which somebody is signed in. */
  readonly timeouts: SessionTimeouts;
  /** The idle timeout until somebody signs in. */
  readonly anonymousTimeout: number;
  /** The longest absolute timeout that a session may be given, in seconds; undefined: any. */
  readonly longestAbsoluteTimeout?: number | undefined;
  /** The attributes that no sign-in keeps. */
  readonly visitorAttributes: readonly string[];
  /** How many live sessions a principal may have; undefined: any number. */
  readonly maxSessions: MaxSessions | undefined;
  /** The updates of attributes that are under way. */
  readonly updates: ConcurrentUpdates;
  /** One atomic step of the store. @throws SessionStoreError when the store failed or did not reply in time */
  write(change: SessionChange): Promise<WriteReply>;
  /** A fresh token and its id. `replaced`: the current id of the session that gets them. */
  drawKey(replaced?: string): SessionKey;
  /** The id as log lines show it: an id that is a token is replaced by a fingerprint. */
  shown(id: string): string;
  /** Where to report what an attacker may have done; unset: nowhere. */
  readonly securityEvents?: SecurityEvents | undefined;
}
