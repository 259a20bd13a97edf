import { ConcurrentUpdates } from '../../src/session/concurrent-updates.js';
import type { AttributeSerializer } from '../../src/session/attribute.serializer.js';
import { WarnOnce } from '../../src/logging/warn-once.js';
import { generateSessionKey, type SessionKey } from '../../src/session/session-token.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';
import type { SessionChange, WriteReply } from '../../src/session/session-change.js';
import type { SessionBounds } from '../../src/session/session-bounds.js';
import { UNBOUNDED } from './unbounded.js';
import { SessionIndexes } from '../../src/session/session-indexes.js';
import type { SessionRecord } from '../../src/session/session-record.js';
import type { SessionWriter } from '../../src/session/session-state.js';
import type { SecurityEvents } from '../../src/security-events/security-events.js';
import { TrackedSession } from '../../src/session/tracked-session.js';

const DONE = { create: 'saved', update: 'saved', touch: 'touched', delete: 'deleted' } as const;

/** Records the writes, and replies to each with success unless a test has prepared a reply. */
export class RecordingWriter implements SessionWriter {
  readonly warnings = new WarnOnce();
  readonly indexes = new SessionIndexes();
  readonly timeouts = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
  anonymousTimeout = 1800;
  bounds: SessionBounds = UNBOUNDED;
  visitorAttributes: readonly string[] = [];
  maxSessions: SessionWriter['maxSessions'];
  securityEvents: SecurityEvents | undefined;
  updates = new ConcurrentUpdates((change) => this.write(change), 5000);
  readonly writes: SessionChange[] = [];
  /** The ids that the drawn ids were to replace; undefined for new sessions. */
  readonly replaced: (string | undefined)[] = [];
  readonly #replies: (WriteReply | (() => WriteReply | Promise<WriteReply>))[] = [];

  constructor(readonly serializer: AttributeSerializer = new JsonAttributeSerializer()) {}

  /** The replies to the next writes; a function is called when the write has arrived. */
  reply(...replies: (WriteReply | (() => WriteReply | Promise<WriteReply>))[]): this {
    this.#replies.push(...replies);
    return this;
  }

  async write(changes: SessionChange): Promise<WriteReply> {
    this.writes.push(changes);
    const reply = this.#replies.shift() ?? { outcome: DONE[changes.kind] };
    return typeof reply === 'function' ? reply() : reply;
  }

  drawKey(replaced?: string): SessionKey {
    this.replaced.push(replaced);
    return generateSessionKey();
  }

  shown(id: string): string {
    return id;
  }

  /** The attributes of the writes so far, each as an object. */
  get attributes(): Record<string, string | null>[] {
    return this.writes.map((changes) => ('attributes' in changes ? Object.fromEntries(changes.attributes) : {}));
  }

  restore(texts: Record<string, string> = {}, record: Partial<SessionRecord> = {}): TrackedSession {
    const id = generateSessionKey().id;
    return new TrackedSession(this, {
      id,
      creationTime: 1000,
      lastAccessedTime: 2000,
      maxInactiveInterval: 1800,
      absoluteTimeout: -1,
      timeToLive: 1_800_000,
      attributes: Object.entries(texts),
      ...record,
    });
  }
}
