import { attributeProblem } from './session-encryption.error.js';

// Values that are not encrypted, of sessions from before: the option `encryption.plainValues`.

/** What happens to plain values: they are written, only read, or refused. */
export const PLAIN_VALUES = ['write', 'read', 'refuse'] as const;
export type PlainValues = (typeof PLAIN_VALUES)[number];

/** Each write of an attribute encrypts it, and the others can be read. */
export const PLAIN_VALUES_DEFAULT: PlainValues = 'read';

/** Without keys, nothing can be encrypted. */
export const PLAIN_VALUES_WITHOUT_KEYS: PlainValues = 'write';

/** Whether attributes are written without encryption. */
export function writesPlain(plainValues: PlainValues): boolean {
  return plainValues === 'write';
}

/** The text of an attribute that is not encrypted. @throws SessionEncryptionError when plain values are refused */
export function readPlain(plainValues: PlainValues, name: string, stored: string): string {
  if (plainValues !== 'refuse') return stored;
  throw attributeProblem(name, "is not encrypted, and option `encryption.plainValues` is 'refuse'");
}
