import { createSecretKey, type KeyObject } from 'node:crypto';
import { decrypt, encrypt } from './aes-gcm.js';
import { DataKey } from './data-key.js';
import { SessionEncryptionError } from './session-encryption.error.js';

/** A key of the option `encryption.keys`. */
export interface RingKey {
  readonly id: string;
  /** 32 bytes. */
  readonly bytes: Uint8Array;
}

// Of a wrapped data key: the id of the data key, the id of the key, and the data key encrypted under it. Like each field
// of ours it is a JSON string. Scripts compare its beginning: see scripts/library/data-keys.lua.
const FORM = /^"1:([\w-]{12}):([\w.-]{1,64}):([\w-]+)"$/;

/** Whether a key can have this id. */
export function isKeyId(id: string): boolean {
  return /^[\w.-]{1,64}$/.test(id);
}

/** The keys under which data keys are stored: the first one encrypts, all decrypt. */
export class KeyRing {
  readonly #keys: ReadonlyMap<string, KeyObject>;

  constructor(keys: readonly RingKey[] = []) {
    this.#keys = new Map(keys.map(({ id, bytes }) => [id, createSecretKey(bytes)]));
  }

  get isEmpty(): boolean {
    return this.#keys.size === 0;
  }

  /** The id of the key that encrypts. */
  get current(): string | undefined {
    return this.#keys.keys().next().value;
  }

  /** The data key as the session of this id stores it. The ring must not be empty. */
  wrap(dataKey: DataKey, sessionId: string): string {
    const [id, key] = this.#keys.entries().next().value!;
    const head = `1:${dataKey.id}:${id}`;
    return `"${head}:${encrypt(key, `${head}:${sessionId}`, dataKey.bytes)}"`;
  }

  /** The data key that the session of this id stores, and the id of the key under which it does. */
  unwrap(wrapped: string, sessionId: string): { readonly dataKey: DataKey; readonly keyId: string } {
    const [, id, keyId, text] = FORM.exec(wrapped) ?? [];
    if (id === undefined || keyId === undefined || text === undefined) throw new SessionEncryptionError(MALFORMED);
    const key = this.#keys.get(keyId);
    if (!key) throw new SessionEncryptionError(missing(keyId), { keyId });
    const bytes = decrypt(key, `1:${id}:${keyId}:${sessionId}`, text);
    if (!bytes) throw new SessionEncryptionError(wrong(keyId), { keyId });
    return { dataKey: new DataKey(id, bytes), keyId };
  }
}

const MALFORMED = 'The data key of an encrypted session is malformed: it was changed in Redis';

function missing(keyId: string): string {
  return `A session is encrypted under the key "${keyId}", which is not in option \`encryption.keys\`: add it, not as the first`;
}

function wrong(keyId: string): string {
  return (
    `The data key of a session cannot be decrypted with the key "${keyId}" of option \`encryption.keys\`: the key has ` +
    'other bytes than the one that encrypted, or the session was changed in Redis'
  );
}
