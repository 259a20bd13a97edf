import { type AttributeSerializer, hasText, SerializationProblem } from './attribute.serializer.js';
import { readText } from './json-attribute.serializer.js';
import { SessionAttributeError } from '../errors/session.errors.js';
import type { WarnOnce } from '../logging/warn-once.js';
import type { AttributeChanges } from './session-change.js';
import type { StoredText } from './session-record.js';

/** The session that attributes belong to. */
export interface AttributesOwner {
  /** The session id as log lines show it. */
  shownId(): string;
  /** Warns of each undecodable attribute once. */
  readonly warnings: WarnOnce;
}

/** Matches names of attributes. */
export type NameTest = (name: string) => boolean;

/** The attributes of a session as the store has them: texts, each of which is decoded only when it is read. */
export class StoredAttributes {
  readonly #texts: Map<string, StoredText>;
  /**
   * Matches what the next rotation leaves behind. The store still has these attributes, but nothing here shows them.
   */
  #left: NameTest | undefined;
  /** By attribute name, the text that could not be decoded. */
  #undecodable: Map<string, string> | undefined;

  constructor(
    texts: Iterable<readonly [string, StoredText]>,
    readonly serializer: AttributeSerializer,
    readonly owner: AttributesOwner,
  ) {
    this.#texts = new Map(texts);
  }

  /** Decodes nothing: an undecodable attribute is missing here only once it was read. */
  get names(): string[] {
    const names = [...this.#texts.keys()];
    if (!this.#left && !this.#undecodable) return names;
    return names.filter((name) => !this.isLeft(name) && !this.#isUndecodable(name));
  }

  /** All attributes, also those that cannot be decoded. */
  get texts(): Iterable<readonly [name: string, text: StoredText]> {
    return this.#left ? [...this.#texts].filter(([name]) => !this.isLeft(name)) : this.#texts;
  }

  has(name: string): boolean {
    return this.unread(name) !== undefined;
  }

  /** The text, or an object that reads it. */
  unread(name: string): StoredText | undefined {
    return this.isLeft(name) ? undefined : this.#texts.get(name);
  }

  /** @throws SessionStoreError when the store cannot read the text */
  text(name: string): string | undefined {
    const text = this.unread(name);
    if (typeof text !== 'object') return text;
    const read = text.read();
    this.#texts.set(name, read);
    return read;
  }

  /** All texts but those that the store cannot read. */
  get readable(): [name: string, text: string][] {
    return [...this.texts].flatMap(([name]) => {
      try {
        return [[name, this.text(name)!]];
      } catch {
        return [];
      }
    });
  }

  /** Records the text that the store has now; undefined when it no longer has the attribute. */
  replace(name: string, text: string | undefined): void {
    if (text === undefined) this.#texts.delete(name);
    else this.#texts.set(name, text);
  }

  /** What `leave()` was called with since the last save that has left attributes behind. */
  get left(): NameTest | undefined {
    return this.#left;
  }

  /** Whether the next rotation leaves an attribute behind. */
  isLeft(name: string): boolean {
    return this.#left?.(name) === true;
  }

  /** The names of what the store has and `leave()` has hidden. */
  get namesLeft(): string[] {
    return this.#left ? [...this.#texts.keys()].filter((name) => this.isLeft(name)) : [];
  }

  /** Shows these attributes no more, because the next rotation leaves them behind. */
  leave(isLeft: NameTest): void {
    const before = this.#left;
    this.#left = before ? (name) => before(name) || isLeft(name) : isLeft;
  }

  /** Shows what was left behind again, because no rotation will be saved. */
  stay(): void {
    this.#left = undefined;
  }

  /** Records a save. `left`: what it has left behind. */
  saved(changes: AttributeChanges, left: NameTest | undefined): void {
    if (left) for (const name of this.#texts.keys()) if (left(name)) this.#texts.delete(name);
    if (this.#left === left) this.#left = undefined;
    for (const [name, text] of changes) this.replace(name, text ?? undefined);
  }

  /** The value that `decode()` would return if the attribute had this text. */
  decodeText(name: string, text: string | undefined): unknown {
    if (text === this.text(name)) return this.decode(name);
    const texts = text === undefined ? [] : ([[name, text]] as const);
    return new StoredAttributes(texts, this.serializer, this.owner).decode(name);
  }

  /** The decoded value; undefined when it cannot be decoded. @throws SessionStoreError when the store cannot read it */
  decode(name: string): unknown {
    const text = this.text(name);
    if (text === undefined || this.#isUndecodable(name)) return undefined;
    try {
      return readText(this.serializer, text) ?? undefined;
    } catch {
      // The error is not logged: JSON.parse quotes the text that it could not read.
      const undecodable = (this.#undecodable ??= new Map<string, string>());
      if (!undecodable.has(name)) this.#warn(name);
      undecodable.set(name, text);
      return undefined;
    }
  }

  /** The decoded value; undefined when the store cannot read it or it cannot be decoded. */
  peek(name: string): unknown {
    try {
      return this.decode(name);
    } catch {
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

  /** The text of a value; undefined when it cannot be encoded. */
  textOf(value: unknown): string | undefined {
    try {
      return this.serializer.serialize(value);
    } catch {
      return undefined;
    }
  }

  /** Whether the text of a value is still this one. */
  hasText(value: unknown, text: string): boolean {
    return hasText(this.serializer, value, text);
  }

  /**
   * The text that later encodings of a value are compared with. Not the stored text: another language may write the
   * same value differently, and reading it must not write it back.
   */
  textAsRead(raw: string): string | undefined {
    try {
      return this.serializer.serialize(readText(this.serializer, raw));
    } catch {
      // Others may store what we cannot encode, such as 1e999, which we read as Infinity. Reading it must not fail.
      return undefined;
    }
  }

  /** Whether the store has a value with this text, however the text is formatted there; null: whether it has none. */
  holds(name: string, text: string | null): boolean {
    if (text === null || !this.has(name)) return text === null && !this.has(name);
    let raw: string | undefined;
    try {
      raw = this.text(name);
    } catch {
      // The store cannot read the text. Replacing it must not fail.
      return false;
    }
    return raw !== undefined && (raw === text || this.textAsRead(raw) === text);
  }

  #isUndecodable(name: string): boolean {
    if (!this.#undecodable) return false;
    const text = this.unread(name);
    return text !== undefined && this.#undecodable.get(name) === text;
  }

  #warn(name: string): void {
    this.owner.warnings.warn(
      name,
      `Attribute ${JSON.stringify(name)} of session ${this.owner.shownId()} cannot be decoded: reads of it give ` +
        'undefined. Set or remove the attribute, or configure the serializer that wrote it',
    );
  }
}

/** Whether a value that was read can be changed without being set. */
export function canChangeInPlace(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
