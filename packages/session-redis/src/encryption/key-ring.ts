import { createSecretKey, type KeyObject } from 'node:crypto';
import { DataKey, decrypt, encrypt } from './data-key.js';
import { SessionEncryptionError } from './session-encryption.error.js';

export interface RingKey {
  readonly id: string;
  /** 32 bytes. */
  readonly bytes: Uint8Array;
}

// The id of the data key, the id of the key, and the data key encrypted under that. Scripts compare the beginning: see
// scripts/library/data-keys.lua.
const FORM = /^1:([\w-]{12}):([\w.-]{1,64}):([\w-]+)$/;

/** Where a key ring is used. What it wraps there opens nowhere else, also where applications have the same keys. */
export interface KeyRingScope {
  readonly kind: 'session' | 'deadline';
  readonly namespace: string;
}

/** The keys that wrap data keys: the first one encrypts, all decrypt. What is wrapped opens for its owner alone. */
export class KeyRing {
  readonly #keys: ReadonlyMap<string, KeyObject>;

  constructor(
    keys: readonly RingKey[] = [],
    private readonly scope: KeyRingScope = { kind: 'session', namespace: 'nest:session' },
  ) {
    this.#keys = new Map(keys.map(({ id, bytes }) => [id, createSecretKey(bytes)]));
  }

  get isEmpty(): boolean {
    return this.#keys.size === 0;
  }

  get current(): string | undefined {
    return this.#keys.keys().next().value;
  }

  /** Wraps a data key for a session or deadline. The ring must not be empty. */
  wrap(dataKey: DataKey, ownerId: string): string {
    const [id, key] = this.#keys.entries().next().value!;
    return `1:${dataKey.id}:${id}:${encrypt(key, this.#associated(dataKey.id, id, ownerId), dataKey.bytes)}`;
  }

  /** Unwraps the data key of a session or deadline. `keyId`: of the key that wraps it. */
  unwrap(wrapped: string, ownerId: string): { readonly dataKey: DataKey; readonly keyId: string } {
    const { kind } = this.scope;
    const [, id, keyId, text] = FORM.exec(wrapped) ?? [];
    if (id === undefined || keyId === undefined || text === undefined)
      throw new SessionEncryptionError(`The data key of an encrypted ${kind} is malformed: it was changed in Redis`);
    const key = this.#keys.get(keyId);
    if (!key) {
      const missing = `A ${kind} is encrypted under the key "${keyId}", but option \`encryption.keys\` lacks it: `;
      throw new SessionEncryptionError(`${missing}add it behind the first key`, { keyId });
    }
    const bytes = decrypt(key, this.#associated(id, keyId, ownerId), text);
    if (bytes) return { dataKey: new DataKey(id, bytes), keyId };
    throw new SessionEncryptionError(
      `The data key of a ${kind} cannot be decrypted with the key "${keyId}" of option \`encryption.keys\`. Either ` +
        `this key has other bytes than the key that encrypted it, or the ${kind} was changed in Redis, or copied from ` +
        'another namespace',
      { keyId },
    );
  }

  #associated(...ids: readonly string[]): string {
    return JSON.stringify([this.scope.kind, this.scope.namespace, ...ids]);
  }
}
