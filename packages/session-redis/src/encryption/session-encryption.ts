import type { CreateSession, SessionRecord, UpdateSession } from '@nest-session/core/store';
import {
  type EncryptedReply,
  EncryptedSession,
  type EncryptedUpdate,
  type EncryptionRules,
} from './encrypted-session.js';
import { KeyRing } from './key-ring.js';
import { PLAIN_VALUES_WITHOUT_KEYS } from './plain-values.js';
import { DataKeyConflictError, SessionEncryptionError } from './session-encryption.error.js';

/** A session as it is stored in Redis. */
export interface StoredRecord extends SessionRecord {
  readonly attributes: readonly (readonly [name: string, stored: string])[];
  /** The wrapped data key of its attributes; undefined if none of them is encrypted. */
  readonly dataKey: string | undefined;
  /** Its entries in indexes, as the scripts write them; undefined: none. */
  readonly index?: string | undefined;
}

/** A session for a request. */
export type LoadedRecord = SessionRecord & Pick<StoredRecord, 'index'>;

type Creation = Pick<CreateSession, 'id' | 'attributes'>;

/** The data key to store with a new session. */
export interface NewDataKey {
  readonly dataKey?: string | undefined;
}

// Other requests may interfere: one may encrypt the session first, one may rotate it, one may encrypt the same text.
const MOST_ATTEMPTS = 5;

/** Encrypts the attributes of sessions on their way to Redis, and decrypts them. Without keys it encrypts nothing. */
export class SessionEncryption {
  /** Without a key, nothing is encrypted. */
  readonly hasKeys: boolean;

  constructor(readonly rules: EncryptionRules = { ring: new KeyRing(), plainValues: PLAIN_VALUES_WITHOUT_KEYS }) {
    this.hasKeys = !rules.ring.isEmpty;
  }

  /** Returns a session whose texts are decrypted when they are read. */
  decrypted(record: StoredRecord): LoadedRecord {
    const { id, attributes, dataKey } = record;
    if (dataKey === undefined && !this.hasKeys) return record;
    const memo = new EncryptedSession(this.rules, id, dataKey);
    const texts = attributes.map(([name, stored]) => {
      memo.note(name, stored);
      return [name, memo.unread(name, stored)] as const;
    });
    return { ...record, attributes: texts, memo };
  }

  /** Like `decrypted()`, for a request. @throws SessionEncryptionError if this instance cannot decrypt the session */
  loaded(record: StoredRecord): LoadedRecord {
    const decrypted = this.decrypted(record);
    if (decrypted.memo instanceof EncryptedSession) decrypted.memo.assertReadable();
    return decrypted;
  }

  create<T extends Creation, R extends EncryptedReply>(
    change: T,
    send: (change: T & NewDataKey) => Promise<R>,
  ): Promise<R> {
    // Avoid another promise, so that applications without encryption pay nothing for it.
    return this.hasKeys ? this.#create(change, send) : send(change);
  }

  save<R extends EncryptedReply>(change: UpdateSession, send: (change: EncryptedUpdate) => Promise<R>): Promise<R> {
    const session = this.#sessionOf(change);
    return session ? this.#save(session, change, send) : send(change);
  }

  async #create<T extends Creation, R extends EncryptedReply>(
    change: T,
    send: (change: T & NewDataKey) => Promise<R>,
  ): Promise<R> {
    const session = new EncryptedSession(this.rules, change.id);
    const attributes = session.encrypt(change.attributes);
    const reply = await send({ ...change, attributes, dataKey: session.newDataKey });
    if (reply.outcome !== 'created') return reply;
    session.created(attributes);
    return { ...reply, memo: session };
  }

  async #save<R extends EncryptedReply>(
    session: EncryptedSession,
    change: UpdateSession,
    send: (change: EncryptedUpdate) => Promise<R>,
  ): Promise<R> {
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
      const update = session.updateOf(change);
      try {
        const reply = session.settle(change, update, await send(update));
        if (reply) return reply;
      } catch (error) {
        if (!(error instanceof DataKeyConflictError)) throw error;
        session.adopt(error);
      }
    }
    throw new SessionEncryptionError(
      `A session was not saved in ${MOST_ATTEMPTS} attempts, because other requests kept changing its encryption: ` +
        'repeat the request',
    );
  }

  #sessionOf({ memo, id }: UpdateSession): EncryptedSession | undefined {
    if (memo instanceof EncryptedSession) return memo;
    return this.hasKeys ? new EncryptedSession(this.rules, id) : undefined;
  }
}
