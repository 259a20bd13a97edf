import { type AttributeSerializer, hasText, SerializationProblem } from './attribute.serializer.js';
import { SessionAttributeError } from '../errors/session.errors.js';
import type { WarnOnce } from '../logging/warn-once.js';
import type { BoundedSession } from './session-bounds.js';
import type { StoredText } from './session-record.js';
import type { UndecodablePolicy } from './undecodable-policy.js';

/** The session that attributes belong to. */
export interface AttributesOwner extends BoundedSession {
  readonly undecodable: UndecodablePolicy;
  /** The session id as log lines show it. */
  shownId(): string;
  /** Warns of each undecodable attribute once. */
  readonly warnings: WarnOnce;
}

/** The attributes of a session as the store has them: texts, each of which is decoded only when it is read. */
export class StoredAttributes {
  readonly #texts: Map<string, StoredText>;
  /** By attribute name, the text that could not be decoded. */
  #undecodable: Map<string, string> | undefined;

  constructor(
    texts: Iterable<readonly [string, StoredText]>,
    readonly serializer: AttributeSerializer,
    readonly owner: AttributesOwner,
  ) {
    this.#texts = new Map(texts);
  }

  /** Decodes nothing: an undecodable attribute is dropped from here once it was read. */
  get names(): string[] {
    const names = [...this.#texts.keys()];
    if (!this.#undecodable || this.owner.undecodable === 'throw') return names;
    return names.filter((name) => !this.#isUndecodable(name));
  }

  /** Those whose names are accepted. */
  only(isAccepted: (name: string) => boolean): StoredAttributes {
    const texts = [...this.#texts].filter(([name]) => isAccepted(name));
    return new StoredAttributes(texts, this.serializer, this.owner);
  }

  /** All of them, also those that cannot be decoded. */
  get texts(): Iterable<readonly [name: string, text: StoredText]> {
    return this.#texts;
  }

  has(name: string): boolean {
    return this.#texts.has(name);
  }

  /** The text or what gives it. */
  unread(name: string): StoredText | undefined {
    return this.#texts.get(name);
  }

  /** @throws SessionStoreError when the store cannot read the text */
  text(name: string): string | undefined {
    const text = this.#texts.get(name);
    if (typeof text !== 'object') return text;
    const read = text.read();
    this.#texts.set(name, read);
    return read;
  }

  /** Records the text that the store has now; undefined when it no longer has the attribute. */
  replace(name: string, text: string | undefined): void {
    if (text === undefined) this.#texts.delete(name);
    else this.#texts.set(name, text);
  }

  /** What `decode()` would return with another text. */
  decodeText(name: string, text: string | undefined): unknown {
    if (text === this.text(name)) return this.decode(name);
    const texts = text === undefined ? [] : ([[name, text]] as const);
    return new StoredAttributes(texts, this.serializer, this.owner).decode(name);
  }

  /**
   * The decoded value.
   * @throws SessionAttributeError when it cannot be decoded and the policy is `throw`; SessionStoreError when the store
   *   cannot read its text
   */
  decode(name: string): unknown {
    const value = this.#valueOf(name, this.text(name));
    if (this.owner.undecodable !== 'throw' || !this.#isUndecodable(name)) return value;
    throw new SessionAttributeError(name, `cannot be decoded. ${REMEDY}`);
  }

  /** The decoded value, whatever the policy: undefined when it cannot be read or decoded. */
  peek(name: string): unknown {
    let text: string | undefined;
    try {
      text = this.text(name);
    } catch {
      return undefined;
    }
    return this.#valueOf(name, text);
  }

  #valueOf(name: string, text: string | undefined): unknown {
    if (text === undefined || this.#isUndecodable(name)) return undefined;
    try {
      return this.serializer.deserialize(text) ?? undefined;
    } catch {
      // The error is not logged: JSON.parse quotes the text that it could not read.
      const undecodable = (this.#undecodable ??= new Map<string, string>());
      if (!undecodable.has(name)) this.#warn(name);
      undecodable.set(name, text);
      return undefined;
    }
  }

  /** @throws SessionAttributeError when the serializer cannot encode the value */
  encode(name: string, value: unknown): string {
    try {
      return this.serializer.serialize(value);
    } catch (error) {
      const problem = error instanceof SerializationProblem ? error.message : 'cannot be serialized';
      throw new SessionAttributeError(name, problem, { cause: error });
    }
  }

  /** Whether a value still has a text. */
  hasText(value: unknown, text: string): boolean {
    return hasText(this.serializer, value, text);
  }

  /**
   * The text that later encodings of a value are compared with. Not the stored text: another language may write the same
   * value differently, and reading it must not write it back.
   */
  textAsRead(raw: string): string | undefined {
    try {
      return this.serializer.serialize(this.serializer.deserialize(raw));
    } catch {
      // Others may store what we cannot encode, such as 1e999, which we read as Infinity. Reading it must not fail.
      return undefined;
    }
  }

  /** Whether the store has a value with this text, however it is formatted there; null: whether it has none. */
  holds(name: string, text: string | null): boolean {
    if (text === null || !this.has(name)) return text === null && !this.has(name);
    let raw: string | undefined;
    try {
      raw = this.text(name);
    } catch {
      // The store cannot read it. To replace it must not fail.
      return false;
    }
    return raw !== undefined && (raw === text || this.textAsRead(raw) === text);
  }

  #isUndecodable(name: string): boolean {
    if (!this.#undecodable) return false;
    const text = this.#texts.get(name);
    return text !== undefined && this.#undecodable.get(name) === text;
  }

  #warn(name: string): void {
    const consequence = this.owner.undecodable === 'throw' ? 'throw an error' : 'give undefined';
    this.owner.warnings.warn(
      name,
      `Attribute ${JSON.stringify(name)} of session ${this.owner.shownId()} cannot be decoded: reads of it ` +
        `${consequence}. ${REMEDY}`,
    );
  }
}

const REMEDY = 'Set or remove the attribute, or configure the serializer that wrote it';
