import type { UnreadText } from '@nest-session/core/internal';
import type { AttributeChanges, UpdateSession } from '@nest-session/core/store';
import { logger } from '@nest-session/redis-events/internal';
import { bytesIn, decryptAttribute, encryptAttribute, isEncrypted } from './attribute-text.js';
import { DataKey } from './data-key.js';
import type { KeyRing } from './key-ring.js';
import { type PlainValues, readPlain, writesPlain } from './plain-values.js';
import { attributeProblem, type DataKeyConflictError } from './session-encryption.error.js';

/** The encryption options of an application. */
export interface EncryptionRules {
  readonly ring: KeyRing;
  readonly plainValues: PlainValues;
}

/** An update with the texts that Redis stores. */
export interface EncryptedUpdate extends UpdateSession {
  /** The data key to store, wrapped for each id that the session may have. */
  readonly dataKeys?: ReadonlyMap<string, string> | undefined;
}

type Expected = NonNullable<UpdateSession['expected']>;

/** The reply of the store to a creation or an update. `current` is the text that a conflict found. */
export interface EncryptedReply {
  readonly outcome: string;
  readonly current?: string | undefined;
}

/** Encrypts and decrypts the attributes of one session, from its load to its saves. */
export class EncryptedSession {
  /** The known texts in Redis. A compare-and-set sends exactly the stored text. */
  readonly #texts = new Map<string, string>();
  #dataKey: DataKey | undefined;
  /** The id of the key that wraps the data key in Redis; undefined while no data key is known to be there. */
  #keyId: string | undefined;
  /** The id after a rotation by another request, if the data key has to be stored under it. */
  #laterId: string | undefined;
  /** The attributes that were logged as unreadable. */
  readonly #logged = new Set<string>();

  /** @param wrapped the stored data key, if the session had one when it was loaded */
  constructor(
    private readonly rules: EncryptionRules,
    private readonly id: string,
    private readonly wrapped?: string,
  ) {}

  /** @throws SessionEncryptionError if this instance cannot decrypt any attribute of the session */
  assertReadable(): void {
    if (this.wrapped !== undefined) this.#open(this.wrapped, this.id);
    else for (const [name, stored] of this.#texts) this.#decrypt(name, stored);
  }

  /** Records the text of an attribute in Redis. Undefined or null means that Redis has none. */
  note(name: string, stored: string | undefined | null): void {
    if (typeof stored === 'string') this.#texts.set(name, stored);
    else this.#texts.delete(name);
  }

  /**
   * The text of an attribute, for the application. Reading it throws a SessionEncryptionError if it cannot be
   * decrypted.
   */
  unread(name: string, stored: string): UnreadText {
    return { bytes: bytesIn(stored), read: () => this.#read(name, stored) };
  }

  /** Returns the texts to store. */
  encrypt(attributes: AttributeChanges): AttributeChanges {
    if (writesPlain(this.rules.plainValues)) return attributes;
    const encrypted = new Map<string, string | null>();
    for (const [name, text] of attributes)
      encrypted.set(name, text === null ? null : encryptAttribute(this.#own, name, text));
    return encrypted;
  }

  /** The data key to store when the session is created. */
  get newDataKey(): string | undefined {
    return writesPlain(this.rules.plainValues) ? undefined : this.rules.ring.wrap(this.#own, this.id);
  }

  /** Records that Redis has created the session with these texts. */
  created(attributes: AttributeChanges): void {
    for (const [name, stored] of attributes) this.note(name, stored);
    if (this.#dataKey) this.#keyId = this.rules.ring.current;
  }

  /** Returns the update with the texts that Redis stores. */
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
   * Records the result of an update, and returns the reply with plain texts. Returns undefined if the update has to be
   * repeated with what the reply has shown.
   */
  settle<R extends EncryptedReply>(
    change: UpdateSession,
    { attributes, dataKeys }: EncryptedUpdate,
    reply: R,
  ): R | undefined {
    if (reply.outcome === 'conflict') return this.#settleConflict(change.expected!, reply);
    if (reply.outcome !== 'saved' && reply.outcome !== 'forwarded') return reply;
    for (const [name, stored] of attributes) this.note(name, stored);
    // A forwarded save does not change a data key that Redis already has.
    if (dataKeys && (reply.outcome === 'saved' || this.#keyId === undefined)) this.#keyId = this.rules.ring.current;
    return reply;
  }

  /** Takes over the data key of the session in Redis. If there is none, records the later id of the session. */
  adopt({ sessionId, wrapped }: DataKeyConflictError): void {
    if (wrapped !== undefined) return this.#open(wrapped, sessionId);
    this.#keyId = undefined;
    this.#laterId = sessionId;
  }

  #read(name: string, stored: string): string {
    try {
      return this.#decrypt(name, stored);
    } catch (error) {
      // Log it here, because Nest logs no HTTP exception that a handler throws.
      if (!this.#logged.has(name)) logger.error((error as Error).message);
      this.#logged.add(name);
      throw error;
    }
  }

  #dataKeysOf({ id, newId }: UpdateSession): ReadonlyMap<string, string> | undefined {
    const { ring, plainValues } = this.rules;
    const dataKey = this.#known;
    if (this.#keyId === undefined) {
      // A session needs no data key until another instance encrypts it.
      if (!dataKey && writesPlain(plainValues)) return undefined;
      // A save that ends the session keeps its id.
      return this.#wrappedFor([id, newId, this.#laterId]);
    }
    if (newId !== undefined) return this.#wrappedFor([newId]);
    return this.#keyId === ring.current ? undefined : this.#wrappedFor([id]);
  }

  #settleConflict<R extends EncryptedReply>(expected: Expected, reply: R): R | undefined {
    const { current } = reply;
    if (current !== undefined && isEncrypted(current) && !this.#known) {
      // Another instance has encrypted the session since its load. The reply to an update with a data key contains its
      // key.
      this.#dataKey = DataKey.draw();
      return undefined;
    }
    this.note(expected.name, current);
    if (current === undefined) return reply;
    const text = this.#decrypt(expected.name, current);
    // If the plain texts are equal, another instance has only encrypted the same text again.
    return text === expected.text ? undefined : { ...reply, current: text };
  }

  #decrypt(name: string, stored: string): string {
    if (!isEncrypted(stored)) return readPlain(this.rules.plainValues, name, stored);
    const dataKey = this.#known;
    const text = dataKey && decryptAttribute(dataKey, name, stored);
    if (text === undefined) throw attributeProblem(name, 'cannot be decrypted: it was changed in Redis');
    return text;
  }

  #wrappedFor(ids: readonly (string | undefined)[]): ReadonlyMap<string, string> {
    const { ring } = this.rules;
    return new Map(ids.filter((id) => id !== undefined).map((id) => [id, ring.wrap(this.#own, id)]));
  }

  /** The stored text that Redis is expected to have for a plain text of an attribute. */
  #storedText(name: string, text: string | undefined): string | undefined {
    const stored = this.#texts.get(name);
    // An unknown text causes a conflict, and the reply contains the stored text.
    return stored !== undefined && text !== undefined && this.#decrypt(name, stored) === text ? stored : text;
  }

  /** The data key of the session, if it is known. */
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
