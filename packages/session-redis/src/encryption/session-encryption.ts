import type { UnreadText } from '@nest-session/core/internal';
import type { AttributeChanges, CreateSession, SessionRecord, UpdateSession } from '@nest-session/core/store';
import { logger } from '@nest-session/redis-events/internal';
import { bytesIn, DataKey, isEncrypted } from './data-key.js';
import { KeyRing } from './key-ring.js';
import { attributeProblem, DataKeyConflictError, SessionEncryptionError } from './session-encryption.error.js';

export const PLAIN_VALUES = ['write', 'read', 'refuse'] as const;
export type PlainValues = (typeof PLAIN_VALUES)[number];

export function writesPlain(plainValues: PlainValues): boolean {
  return plainValues === 'write';
}

export interface EncryptionRules {
  readonly ring: KeyRing;
  readonly plainValues: PlainValues;
}

export interface StoredRecord extends SessionRecord {
  readonly attributes: readonly (readonly [name: string, stored: string])[];
  /** The wrapped data key of its attributes; undefined if none of them is encrypted. */
  readonly dataKey: string | undefined;
  /** Its entries in indexes, as the scripts write them; undefined: none. */
  readonly index?: string | undefined;
}

export type LoadedRecord = SessionRecord & Pick<StoredRecord, 'index'>;

export interface NewDataKey {
  readonly dataKey?: string | undefined;
}

// Other requests may encrypt the session first, rotate it, or encrypt the same text.
const MOST_ATTEMPTS = 5;

/** Encrypts the attributes of sessions on their way to Redis, and decrypts them. Without keys it encrypts nothing. */
export class SessionEncryption {
  readonly hasKeys: boolean;

  constructor(readonly rules: EncryptionRules = { ring: new KeyRing(), plainValues: 'write' }) {
    this.hasKeys = !rules.ring.isEmpty;
  }

  /** A session whose texts are decrypted when they are read. */
  decrypted(record: StoredRecord): LoadedRecord {
    const { id, attributes, dataKey } = record;
    if (dataKey === undefined && !this.hasKeys) return record;
    const memo = new EncryptedSession(this.rules, id, dataKey);
    const texts = attributes.map(([name, stored]) => [name, memo.unread(name, stored)] as const);
    return { ...record, attributes: texts, memo };
  }

  /** Like `decrypted()`, for a request. @throws SessionEncryptionError if this instance cannot decrypt the session */
  loaded(record: StoredRecord): LoadedRecord {
    const decrypted = this.decrypted(record);
    if (decrypted.memo instanceof EncryptedSession) decrypted.memo.assertReadable();
    return decrypted;
  }

  /** Without keys it makes no promise beside that of `send`: applications without encryption pay nothing. */
  create<T extends Pick<CreateSession, 'id' | 'attributes'>, R extends EncryptedReply>(
    change: T,
    send: (change: T & NewDataKey) => Promise<R>,
  ): Promise<R> {
    return this.hasKeys ? new EncryptedSession(this.rules, change.id).create(change, send) : send(change);
  }

  save<R extends EncryptedReply>(change: UpdateSession, send: (change: EncryptedUpdate) => Promise<R>): Promise<R> {
    const { memo, id } = change;
    if (memo instanceof EncryptedSession) return this.#save(memo, change, send);
    return this.hasKeys ? this.#save(new EncryptedSession(this.rules, id), change, send) : send(change);
  }

  async #save<R extends EncryptedReply>(
    session: EncryptedSession,
    change: UpdateSession,
    send: (change: EncryptedUpdate) => Promise<R>,
  ): Promise<R> {
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
      const update = session.updateOf(change);
      try {
        const reply = session.settle(change, update, await send(update), attempt === MOST_ATTEMPTS);
        if (reply) return reply;
      } catch (error) {
        if (!(error instanceof DataKeyConflictError)) throw error;
        session.adopt(error, change);
      }
    }
    throw new SessionEncryptionError(
      `A session was not saved in ${MOST_ATTEMPTS} attempts, because other requests kept changing its encryption: ` +
        'repeat the request',
    );
  }
}

export interface EncryptedUpdate extends UpdateSession {
  /** The data key to store, wrapped for each id that the session may have. */
  readonly dataKeys?: ReadonlyMap<string, string> | undefined;
}

/** `current`: the text that a conflict found. */
export interface EncryptedReply {
  readonly outcome: string;
  readonly current?: string | undefined;
}

const OF_ANOTHER_SESSION =
  'A session was not saved, because its save was led to a session with another data key, or without its own: data of the ' +
  'session was changed in Redis';

/** Encrypts and decrypts the attributes of one session, from its load to its saves. */
class EncryptedSession {
  /** The texts in Redis, as far as known. A compare-and-set sends exactly the stored text. */
  readonly #texts = new Map<string, string>();
  #dataKey: DataKey | undefined;
  /** Whether Redis has had this data key: the session has no other one from then on. */
  #isStored: boolean;
  /** The id of the key that wraps the data key in Redis; undefined while no data key is known to be there. */
  #keyId: string | undefined;
  /** After a rotation by another request, the id under which the data key has to be stored. */
  #laterId: string | undefined;
  readonly #logged = new Set<string>();

  /** @param wrapped the stored data key, if the session had one when it was loaded */
  constructor(
    private readonly rules: EncryptionRules,
    private readonly id: string,
    private readonly wrapped?: string,
  ) {
    this.#isStored = wrapped !== undefined;
  }

  assertReadable(): void {
    if (this.wrapped !== undefined) this.#open(this.wrapped, this.id);
    else for (const [name, stored] of this.#texts) this.#decrypt(name, stored);
  }

  /** An attribute as the application reads it, which throws a SessionEncryptionError without its key. */
  unread(name: string, stored: string): UnreadText {
    this.#texts.set(name, stored);
    return { bytes: bytesIn(stored), read: () => this.#read(name, stored) };
  }

  async create<T extends Pick<CreateSession, 'id' | 'attributes'>, R extends EncryptedReply>(
    change: T,
    send: (change: T & NewDataKey) => Promise<R>,
  ): Promise<R> {
    const attributes = this.#encrypt(change.attributes);
    const dataKey = writesPlain(this.rules.plainValues) ? undefined : this.rules.ring.wrap(this.#own, this.id);
    const reply = await send({ ...change, attributes, dataKey });
    if (reply.outcome !== 'created') return reply;
    this.#noteAll(attributes);
    if (this.#dataKey) this.#noteStored();
    return { ...reply, memo: this };
  }

  updateOf(change: UpdateSession): EncryptedUpdate {
    const { expected } = change;
    return {
      ...change,
      attributes: this.#encrypt(change.attributes),
      dataKeys: this.#dataKeysOf(change),
      expected: expected && { name: expected.name, text: this.#storedText(expected.name, expected.text) },
    };
  }

  /** Returns the reply with plain texts; undefined: the update has to be repeated. `isLast`: it will not be. */
  settle<R extends EncryptedReply>(
    change: UpdateSession,
    { attributes, dataKeys }: EncryptedUpdate,
    reply: R,
    isLast: boolean,
  ): R | undefined {
    if (reply.outcome === 'conflict') return this.#settleConflict(change, reply, isLast);
    if (reply.outcome !== 'saved' && reply.outcome !== 'forwarded') return reply;
    this.#noteAll(attributes);
    // A forwarded save does not change a data key that Redis already has.
    if (dataKeys && (reply.outcome === 'saved' || this.#keyId === undefined)) this.#noteStored();
    return reply;
  }

  /** Takes over what Redis has. It must not read one with another data key, to which somebody has led the save. */
  adopt({ sessionId, wrapped }: DataKeyConflictError, { id, newId }: UpdateSession): void {
    const known = this.#isStored ? this.#known : undefined;
    if (wrapped !== undefined) {
      const { dataKey } = this.rules.ring.unwrap(wrapped, sessionId);
      if (known && known.id !== dataKey.id) throw new SessionEncryptionError(OF_ANOTHER_SESSION);
      return this.#open(wrapped, sessionId);
    }
    if (known && sessionId !== id && sessionId !== newId) throw new SessionEncryptionError(OF_ANOTHER_SESSION);
    this.#keyId = undefined;
    this.#laterId = sessionId;
  }

  #noteStored(keyId = this.rules.ring.current): void {
    this.#keyId = keyId;
    this.#isStored = true;
  }

  #encrypt(attributes: AttributeChanges): AttributeChanges {
    if (writesPlain(this.rules.plainValues)) return attributes;
    const encrypted = new Map<string, string | null>();
    for (const [name, text] of attributes) encrypted.set(name, text === null ? null : this.#own.encrypt(name, text));
    return encrypted;
  }

  /** Undefined or null: Redis has none. */
  #note(name: string, stored: string | undefined | null): void {
    if (typeof stored === 'string') this.#texts.set(name, stored);
    else this.#texts.delete(name);
  }

  #noteAll(attributes: AttributeChanges): void {
    for (const [name, stored] of attributes) this.#note(name, stored);
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

  #settleConflict<R extends EncryptedReply>({ expected }: UpdateSession, reply: R, isLast: boolean): R | undefined {
    const { name, text: expectedText } = expected!;
    const { current } = reply;
    if (current !== undefined && isEncrypted(current) && !this.#known) {
      // Another instance has encrypted the session since its load. An update with a data key is told its own.
      this.#dataKey = DataKey.draw();
      return undefined;
    }
    this.#note(name, current);
    if (current === undefined) return reply;
    const text = this.#decrypt(name, current);
    // If the plain texts are equal, another instance has only encrypted the same text again.
    return text === expectedText && !isLast ? undefined : { ...reply, current: text };
  }

  #decrypt(name: string, stored: string): string {
    if (!isEncrypted(stored)) {
      if (this.rules.plainValues !== 'refuse') return stored;
      throw attributeProblem(name, "is not encrypted, and option `encryption.plainValues` is 'refuse'");
    }
    const text = this.#known?.decrypt(name, stored);
    if (text === undefined) throw attributeProblem(name, 'cannot be decrypted: it was changed in Redis');
    return text;
  }

  #wrappedFor(ids: readonly (string | undefined)[]): ReadonlyMap<string, string> {
    const { ring } = this.rules;
    return new Map(ids.filter((id) => id !== undefined).map((id) => [id, ring.wrap(this.#own, id)]));
  }

  /** The stored text that Redis is expected to have for a plain text. */
  #storedText(name: string, text: string | undefined): string | undefined {
    const stored = this.#texts.get(name);
    // An unknown text causes a conflict, and the reply contains the stored text.
    return stored !== undefined && text !== undefined && this.#decrypt(name, stored) === text ? stored : text;
  }

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
    this.#noteStored(keyId);
  }
}
