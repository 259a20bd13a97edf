import type { UnreadText } from '@nest-session/core/internal';
import type { AttributeChanges, UpdateSession } from '@nest-session/core/store';
import { logger } from '../logging/redis-session.logger.js';
import { DataKey } from './data-key.js';
import type { KeyRing } from './key-ring.js';
import { type DataKeyConflictError, SessionEncryptionError } from './session-encryption.error.js';

/** How an application encrypts. */
export interface EncryptionRules {
  readonly ring: KeyRing;
  /** Whether values that are not encrypted are written, or only read, or neither. */
  readonly plainValues: 'write' | 'read' | 'refuse';
}

/** An update with the texts that Redis keeps. */
export interface EncryptedUpdate extends UpdateSession {
  /** The data key to store, by the id of the session for which it is wrapped. */
  readonly dataKeys?: ReadonlyMap<string, string> | undefined;
}

type Expected = NonNullable<UpdateSession['expected']>;

/** How the store answers a creation or an update. `current`: the text that a conflict found. */
export interface StoreReply {
  readonly outcome: string;
  readonly current?: string | undefined;
}

/** Encrypts and decrypts the attributes of one session. It goes with the session from its load to its saves. */
export class EncryptedSession {
  /** The texts in Redis, as far as they are known: to compare and set one, Redis is asked for exactly that text. */
  readonly #texts = new Map<string, string>();
  #dataKey: DataKey | undefined;
  /** The key under which Redis has the data key; undefined while Redis is not known to have one. */
  #keyId: string | undefined;
  /** The id that the session has after a rotation elsewhere, if the data key must be stored under it. */
  #laterId: string | undefined;
  /** The attributes that were logged as unreadable. */
  readonly #logged = new Set<string>();

  /** @param wrapped the data key in Redis, if the session had one when it was loaded */
  constructor(
    private readonly rules: EncryptionRules,
    private readonly id: string,
    private readonly wrapped?: string,
  ) {}

  /** @throws SessionEncryptionError when this instance cannot decrypt the session, whatever its attributes */
  assertReadable(): void {
    if (this.wrapped !== undefined) this.#open(this.wrapped, this.id);
    else for (const [name, stored] of this.#texts) this.#decrypt(name, stored);
  }

  /** Notes the text that Redis has of an attribute; undefined or null when it has none. */
  note(name: string, stored: string | undefined | null): void {
    if (typeof stored === 'string') this.#texts.set(name, stored);
    else this.#texts.delete(name);
  }

  /** The text of an attribute, for the application. It throws a SessionEncryptionError when it cannot be decrypted. */
  unread(name: string, stored: string): UnreadText {
    return { bytes: DataKey.bytesIn(stored), read: () => this.#read(name, stored) };
  }

  /** The texts to store. */
  encrypt(attributes: AttributeChanges): AttributeChanges {
    if (this.rules.plainValues === 'write') return attributes;
    const encrypted = new Map<string, string | null>();
    for (const [name, text] of attributes) encrypted.set(name, text === null ? null : this.#own.encrypt(name, text));
    return encrypted;
  }

  /** The data key to store when the session is created. */
  get newDataKey(): string | undefined {
    return this.rules.plainValues === 'write' ? undefined : this.rules.ring.wrap(this.#own, this.id);
  }

  /** Records that Redis has created the session with these texts. */
  created(attributes: AttributeChanges): void {
    for (const [name, stored] of attributes) this.note(name, stored);
    if (this.#dataKey) this.#keyId = this.rules.ring.current;
  }

  /** The update as Redis gets it. */
  updateOf(change: UpdateSession): EncryptedUpdate {
    const { expected } = change;
    return {
      ...change,
      attributes: this.encrypt(change.attributes),
      dataKeys: this.#dataKeysOf(change),
      expected: expected && { name: expected.name, text: this.#storedText(expected.name, expected.text) },
    };
  }

  /**
   * Takes over what Redis has made of an update, and gives the reply with plain texts. Undefined: make the update again,
   * which this session now knows more about.
   */
  settle<R extends StoreReply>(
    change: UpdateSession,
    { attributes, dataKeys }: EncryptedUpdate,
    reply: R,
  ): R | undefined {
    if (reply.outcome === 'conflict') return this.#settleConflict(change.expected!, reply);
    if (reply.outcome !== 'saved' && reply.outcome !== 'forwarded') return reply;
    for (const [name, stored] of attributes) this.note(name, stored);
    // A forwarded save leaves a data key that Redis has as it is.
    if (dataKeys && (reply.outcome === 'saved' || this.#keyId === undefined)) this.#keyId = this.rules.ring.current;
    return reply;
  }

  /** Takes over the data key of the session; or learns that it has none, and its later id. */
  adopt({ sessionId, wrapped }: DataKeyConflictError): void {
    if (wrapped !== undefined) return this.#open(wrapped, sessionId);
    this.#keyId = undefined;
    this.#laterId = sessionId;
  }

  #read(name: string, stored: string): string {
    try {
      return this.#decrypt(name, stored);
    } catch (error) {
      // Nobody logs an HTTP exception that a handler throws.
      if (!this.#logged.has(name)) logger.error((error as Error).message);
      this.#logged.add(name);
      throw error;
    }
  }

  #dataKeysOf({ id, newId }: UpdateSession): ReadonlyMap<string, string> | undefined {
    const { ring, plainValues } = this.rules;
    const dataKey = this.#known;
    if (this.#keyId === undefined) {
      // Nothing needs a data key before another instance encrypts.
      if (!dataKey && plainValues === 'write') return undefined;
      // The session keeps its id if it ends with this save.
      return this.#wrappedFor([id, newId, this.#laterId]);
    }
    if (newId !== undefined) return this.#wrappedFor([newId]);
    return this.#keyId === ring.current ? undefined : this.#wrappedFor([id]);
  }

  #settleConflict<R extends StoreReply>(expected: Expected, reply: R): R | undefined {
    const { current } = reply;
    if (current !== undefined && DataKey.hasEncrypted(current) && !this.#known) {
      // Others have encrypted the session since its load. The reply to an update with a data key has theirs.
      this.#dataKey = DataKey.draw();
      return undefined;
    }
    this.note(expected.name, current);
    if (current === undefined) return reply;
    const text = this.#decrypt(expected.name, current);
    // Somebody else has encrypted the same text.
    return text === expected.text ? undefined : { ...reply, current: text };
  }

  #decrypt(name: string, stored: string): string {
    if (!DataKey.hasEncrypted(stored)) {
      if (this.rules.plainValues !== 'refuse') return stored;
      throw problem(name, "is not encrypted, and option `encryption.plainValues` is 'refuse'");
    }
    const text = this.#known?.decrypt(name, stored);
    if (text === undefined) throw problem(name, 'cannot be decrypted: it was changed in Redis');
    return text;
  }

  #wrappedFor(ids: readonly (string | undefined)[]): ReadonlyMap<string, string> {
    const { ring } = this.rules;
    return new Map(ids.filter((id) => id !== undefined).map((id) => [id, ring.wrap(this.#own, id)]));
  }

  /** The text that Redis should have of an attribute, if it has this one. */
  #storedText(name: string, text: string | undefined): string | undefined {
    const stored = this.#texts.get(name);
    // A text that is not known leads to a conflict, whose reply says what Redis has.
    return stored !== undefined && text !== undefined && this.#decrypt(name, stored) === text ? stored : text;
  }

  /** The data key that the session has, as far as it is known. */
  get #known(): DataKey | undefined {
    if (!this.#dataKey && this.wrapped !== undefined) this.#open(this.wrapped, this.id);
    return this.#dataKey;
  }

  get #own(): DataKey {
    return this.#known ?? (this.#dataKey = DataKey.draw());
  }

  #open(wrapped: string, id: string): void {
    const { dataKey, keyId } = this.rules.ring.unwrap(wrapped, id);
    this.#dataKey = dataKey;
    this.#keyId = keyId;
  }
}

function problem(attributeName: string, sentence: string): SessionEncryptionError {
  return new SessionEncryptionError(`Session attribute ${JSON.stringify(attributeName)} ${sentence}`, {
    attributeName,
  });
}
