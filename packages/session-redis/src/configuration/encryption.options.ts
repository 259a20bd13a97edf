import { isGuessableKey, type OptionReader } from '@nest-session/core/internal';
import { KeyRing, type KeyRingScope, type RingKey } from '../encryption/key-ring.js';
import { PLAIN_VALUES, SessionEncryption } from '../encryption/session-encryption.js';

export interface EncryptionKey {
  /** Stands in Redis with each session that the key encrypts: 1 to 64 letters, digits, `-`, `_` and `.`. */
  readonly id: string;
  /** 32 random bytes as base64: `openssl rand -base64 32`. A key that can be guessed is refused. */
  readonly key: string;
}

export interface EncryptionOptions {
  /** The first key encrypts, all decrypt. */
  readonly keys: readonly EncryptionKey[];
  /**
   * Values that are not encrypted, of sessions from before. `'write'`: nothing is encrypted, but what is can be read.
   * `'read'`: they can be read, and each write of an attribute encrypts it. `'refuse'`: an error. @default 'read'
   */
  readonly plainValues?: 'write' | 'read' | 'refuse';
}

/** Its problems quote no key. */
export function readEncryption(reader: OptionReader, isSet: boolean, scope: KeyRingScope): SessionEncryption {
  const given = reader.value('keys', (value): value is unknown => value !== undefined, LIST);
  const plainValues = reader.oneOf('plainValues', PLAIN_VALUES, 'read');
  if (!isSet) return new SessionEncryption();
  const list: readonly unknown[] = Array.isArray(given) ? given : [];
  if (list.length === 0) reader.problem(`Option \`encryption.keys\` must be ${LIST}.`);
  const keys: RingKey[] = [];
  for (const [index, each] of list.entries()) {
    const found = keyOf(each);
    if (typeof found === 'string') reader.problem(`Option \`encryption.keys[${index}]\` ${found}.`);
    else if (keys.some(({ id }) => id === found.id))
      reader.problem(`Option \`encryption.keys[${index}]\` has the \`id\` of an earlier key.`);
    else keys.push(found);
  }
  reader.finish();
  return new SessionEncryption({ ring: new KeyRing(keys, scope), plainValues });
}

const LIST = 'a list of keys, at least one';
const DRAWN = '`openssl rand -base64 32`';
const KEY_ID = /^[\w.-]{1,64}$/;

/** A key as the ring has it, or what is wrong with it, as the end of a sentence. */
function keyOf(given: unknown): RingKey | string {
  const { id, key } = Object(given) as Record<keyof EncryptionKey, unknown>;
  if (typeof id !== 'string' || !KEY_ID.test(id))
    return 'must have an `id` of 1 to 64 letters, digits, "-", "_" and "."';
  const bytes = typeof key === 'string' && /^[\w+/-]{43}=?$/.test(key) ? Buffer.from(key, 'base64') : undefined;
  if (bytes?.length !== 32) return `must have a \`key\` of 32 bytes as base64: ${DRAWN}`;
  // A typed text is base64 itself, or was encoded.
  return [bytes.toString('latin1'), String(key)].some(isGuessableKey)
    ? `has a \`key\` that can be guessed: draw 32 random bytes, as ${DRAWN} does`
    : { id, bytes };
}
