import type { DeadlineEvent } from '../deadlines/deadline-event.js';
import { DeadlineDataError } from '../deadlines/deadline.errors.js';
import { shownError } from '@nest-session/core/internal';
import { DataKey, decrypt, encrypt, type EncryptionRules, writesPlain } from '@nest-session/redis/internal';

type DeadlineIdentity = Pick<DeadlineEvent, 'id' | 'name' | 'key'>;

/** The data of a deadline as Redis has them. */
interface StoredText {
  readonly text: string;
  /** The wrapped data key with which the text is encrypted; undefined: it is not. */
  readonly dataKey: string | undefined;
}

/** Encrypts the data of deadlines, each under a data key of its own. Without keys it encrypts nothing. */
export class DeadlineEncryption {
  constructor(private readonly rules: EncryptionRules) {}

  encrypted(text: string, deadline: DeadlineIdentity): StoredText {
    const { ring, plainValues } = this.rules;
    if (ring.isEmpty || writesPlain(plainValues)) return { text, dataKey: undefined };
    const dataKey = DataKey.draw();
    return { text: encrypt(dataKey.key, associated(deadline), text), dataKey: ring.wrap(dataKey, deadline.id) };
  }

  /** @throws DeadlineDataError when the text was changed, or its key is missing, or plain data are refused */
  decrypted(stored: StoredText, deadline: DeadlineIdentity): string {
    try {
      return this.#decrypted(stored, deadline);
    } catch (cause) {
      throw new DeadlineDataError(deadline.name, `cannot be decrypted: ${shownError(cause)}`, { cause });
    }
  }

  #decrypted({ text, dataKey }: StoredText, deadline: DeadlineIdentity): string {
    const { ring, plainValues } = this.rules;
    if (dataKey === undefined) {
      if (plainValues === 'refuse') throw new Error("they are plain, and option `encryption.plainValues` is 'refuse'");
      return text;
    }
    const data = decrypt(ring.unwrap(dataKey, deadline.id).dataKey.key, associated(deadline), text);
    if (!data) throw new Error('they were changed in Redis, or belong to another deadline');
    return data.toString('utf8');
  }
}

/** What is encrypted for one deadline cannot be read as that of another one. */
function associated({ id, name, key }: DeadlineIdentity): string {
  return `deadline\n${id}\n${name}\n${key}`;
}
