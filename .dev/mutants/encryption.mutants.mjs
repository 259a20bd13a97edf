// Mistakes in how attributes are encrypted.
const byStore = (test) => ({ spec: 'encryption.spec.ts', test });
const byApplication = (test) => ({ spec: 'encrypted-applications.spec.ts', test });
const byTexts = (test) => ({ spec: 'unread-texts.spec.ts', test });

export const encryption = [
  {
    mistake: 'Nobody looks whether an encrypted value was changed',
    in: 'aes-gcm: decrypt',
    code: 'decipher.final();',
    instead: '',
    killedBy: byStore('a changed tag'),
  },
  {
    mistake: 'An encrypted session takes the data key of whoever saves it last',
    in: 'includes/data-key',
    code: 'fits = string.match(brought, same) == string.match(current, same)',
    instead: 'fits = true',
    killedBy: byStore('that encrypt a session first agree on one data key'),
  },
  {
    mistake: 'A rotation by a request that knows of no encryption leaves a data key that nobody can read',
    in: 'save-session',
    code: `if rotates or data_keys then`,
    instead: `if data_keys then`,
    killedBy: byStore('an instance without keys does not rotate a session that was encrypted since its load'),
  },
  {
    mistake: 'A forwarded save stores the data key that is wrapped for the encrypted session of the old id',
    in: 'save-session',
    code: `data_keys[rotates and not ends and new_id or id]`,
    instead: `data_keys[new_id]`,
    killedBy: byStore('leaves saves from the old id readable while the keys are being rotated'),
  },
  {
    mistake: 'An encrypted session that ends with its rotation has the data key of the new id',
    in: 'save-session',
    code: `data_keys[rotates and not ends and new_id or id]`,
    instead: `data_keys[rotates and new_id or id]`,
    killedBy: byStore('that ends the session leaves its data readable under the old id'),
  },
  {
    mistake: 'A session without the key of its encryption is found, and fails later',
    in: 'SessionEncryption.loaded',
    code: 'if (decrypted.memo instanceof EncryptedSession) decrypted.memo.assertReadable();',
    instead: '',
    killedBy: byStore('without any key, a load fails with one error and nothing is lost'),
  },
  {
    mistake: 'The key of an encrypted session never changes',
    in: 'EncryptedSession.#dataKeysOf',
    code: 'this.#keyId === ring.current ? undefined : this.#wrappedFor([id])',
    instead: 'undefined',
    killedBy: byStore('is used at the next save, and then the old one is needed no more'),
  },
  {
    mistake: 'A plain value that was planted beside encrypted ones is believed',
    in: 'EncryptedSession.#decrypt',
    code: "if (this.rules.plainValues !== 'refuse') return stored;",
    instead: 'return stored;',
    killedBy: byStore('that were planted in an encrypted session are an error with `refuse`'),
  },
  {
    mistake: 'The expected text of an update is never the encrypted one',
    in: 'EncryptedSession.#storedText',
    code: 'text !== undefined && this.#decrypt(name, stored) === text ? stored : text',
    instead: 'text',
    killedBy: byStore('each save, of a new session, an encrypted one and a rotation'),
  },
  {
    mistake: 'Handlers of events get encrypted texts',
    in: 'toSessionEvent',
    code: 'stored && encryption ? encryption.decrypted(stored) : stored',
    instead: 'stored',
    killedBy: byApplication('have the data in plain text'),
  },
  {
    mistake: 'An encrypted session is ended because its key is missing',
    in: 'canDecode',
    code: 'return error instanceof SessionStoreError;',
    instead: 'return false;',
    killedBy: byTexts('is no reason to end the session'),
  },
  {
    mistake: 'The store is not told how it has encrypted the session',
    in: 'SessionState.access',
    code: 'return memo ? { ...access, memo } : access;',
    instead: 'return access;',
    killedBy: byTexts('comes back with each update of the session'),
  },
  {
    mistake: 'An encrypted session is full long before its bound',
    in: 'EncryptedSession.unread',
    code: 'DataKey.bytesIn(stored)',
    instead: 'Buffer.byteLength(stored)',
    killedBy: byStore(
      'take as much of the bounds as without encryption, of a session that was created, saved or loaded',
    ),
  },
];
