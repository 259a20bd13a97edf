import { readText } from './json-attribute.serializer.js';
import { assertName, HIDDEN, PRINCIPAL_ATTRIBUTE } from './attribute-names.js';
import { assertAttributeFits, assertSessionFits, SessionContent, type BoundedSession } from './session-bounds.js';
import type { AttributeChanges } from './session-change.js';
import { type AttributeSerializer, hasText, problemWithoutValue } from './attribute.serializer.js';
import { SessionAttributeError } from '../errors/session.errors.js';
import type { WarnOnce } from '../logging/warn-once.js';
import type { StoredText } from './session-record.js';

export type NameTest = (name: string) => boolean;

/** The attributes of a session as the store has them: texts, each of which is decoded only when it is read. */
export class StoredAttributes {
  readonly #texts: Map<string, StoredText>;
  /** Matches what the next rotation leaves behind: the store still has it, but nothing here shows it. */
  #left: NameTest | undefined;
  #undecodable: Map<string, string> | undefined;
  #peeked: Map<string, { readonly text: string | undefined; readonly value: unknown }> | undefined;

  constructor(
    texts: Iterable<readonly [string, StoredText]>,
    readonly serializer: AttributeSerializer,
    private readonly warnings: WarnOnce,
    private readonly shownId: () => string,
  ) {
    this.#texts = new Map(texts);
  }

  /** Decodes nothing: an undecodable attribute is missing here only once it was read. */
  get names(): string[] {
    const names = [...this.#texts.keys()].filter((name) => !HIDDEN.has(name));
    if (!this.#left && !this.#undecodable) return names;
    return names.filter((name) => {
      const text = this.unread(name);
      return text !== undefined && this.#undecodable?.get(name) !== text;
    });
  }

  get texts(): Iterable<readonly [name: string, text: StoredText]> {
    return this.#left ? [...this.#texts].filter(([name]) => !this.isLeft(name)) : this.#texts;
  }

  has(name: string): boolean {
    return this.unread(name) !== undefined;
  }

  unread(name: string): StoredText | undefined {
    return this.#left?.(name) ? undefined : this.#texts.get(name);
  }

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
      const text = attempt(() => this.text(name));
      return text === undefined ? [] : [[name, text]];
    });
  }

  replace(name: string, text: string | undefined): void {
    if (text === undefined) this.#texts.delete(name);
    else this.#texts.set(name, text);
  }

  get left(): NameTest | undefined {
    return this.#left;
  }

  isLeft(name: string): boolean {
    return this.#left?.(name) === true;
  }

  get namesLeft(): string[] {
    return this.#left ? [...this.#texts.keys()].filter((name) => this.isLeft(name)) : [];
  }

  /** Shows these attributes no more, because the next rotation leaves them behind. */
  leave(isLeft: NameTest): void {
    const before = this.#left;
    this.#left = before ? (name) => before(name) || isLeft(name) : isLeft;
  }

  stay(): void {
    this.#left = undefined;
  }

  saved(changes: AttributeChanges, left: NameTest | undefined): void {
    if (left) for (const name of this.#texts.keys()) if (left(name)) this.#texts.delete(name);
    if (this.#left === left) this.#left = undefined;
    for (const [name, text] of changes) this.replace(name, text ?? undefined);
  }

  decodeText(name: string, text: string | undefined): unknown {
    if (text === this.text(name)) return this.decode(name);
    const texts = text === undefined ? [] : ([[name, text]] as const);
    return new StoredAttributes(texts, this.serializer, this.warnings, this.shownId).decode(name);
  }

  /** The decoded value; undefined when it cannot be decoded. @throws SessionStoreError when the store cannot read it */
  decode(name: string): unknown {
    const text = this.text(name);
    if (text === undefined || this.#undecodable?.get(name) === text) return undefined;
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

  /** For the library's own reads: several of one request look at a value, and none changes it. Never throws. */
  peek(name: string): unknown {
    try {
      const text = this.text(name);
      const known = this.#peeked?.get(name);
      if (known?.text === text) return known?.value;
      const peeked = { text, value: this.decode(name) };
      (this.#peeked ??= new Map<string, typeof peeked>()).set(name, peeked);
      return peeked.value;
    } catch {
      return undefined;
    }
  }

  encode(name: string, value: unknown): string {
    try {
      return this.serializer.serialize(value);
    } catch (error) {
      throw new SessionAttributeError(name, problemWithoutValue(error), { cause: error });
    }
  }

  textOf(value: unknown): string | undefined {
    return attempt(() => this.serializer.serialize(value));
  }

  hasText(value: unknown, text: string): boolean {
    return hasText(this.serializer, value, text);
  }

  /** To compare with later encodings: not the stored text, which another language may have written differently. */
  textAsRead(raw: string): string | undefined {
    // Others may store what we cannot encode, such as 1e999, which we read as Infinity. Reading it must not fail.
    return attempt(() => this.serializer.serialize(readText(this.serializer, raw)));
  }

  /** Whether the store has a value with this text, however the text is formatted there; null: whether it has none. */
  holds(name: string, text: string | null): boolean {
    if (text === null || !this.has(name)) return text === null && !this.has(name);
    // Where the store cannot read the text, replacing it must not fail.
    const raw = attempt(() => this.text(name));
    return raw !== undefined && (raw === text || this.textAsRead(raw) === text);
  }

  #warn(name: string): void {
    this.warnings.warn(
      name,
      `Attribute ${JSON.stringify(name)} of session ${this.shownId()} cannot be decoded: reads of it give ` +
        'undefined. Set or remove the attribute, or configure the serializer that wrote it',
    );
  }
}

function attempt<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch {
    return undefined;
  }
}

function canChangeInPlace(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

interface Entry {
  readonly name: string;
  readonly value: unknown;
  assigned: boolean;
  /**
   * The text when the attribute was set, read or last saved, to notice an object that is changed in place; null for a
   * removed attribute. Undefined for a value that was only read and cannot change in place, or cannot be encoded.
   */
  text: string | null | undefined;
  /** Whether `text` is the stored text, which another language may have formatted differently. */
  isRaw: boolean;
  /** Whether a save was given a change in place, and has had no reply: the store may have it. */
  isSent?: boolean;
}

interface Counted {
  readonly stored: SessionContent;
  now: SessionContent;
}

/** The attributes as the application sees them, and which must be written: those set, and objects changed in place. */
export class TrackedAttributes {
  #stored: StoredAttributes;
  /** Only attributes that the application read or set; the others are not decoded. */
  readonly #entries = new Map<string, Entry>();
  /** Whether the application set or removed any: most requests only read. */
  #wasSet = false;
  /** What the store holds, and what it will hold with what was set; undefined until something is set after a save. */
  #content: Counted | undefined;
  /** Whether an object can have changed in place: see `rest()`. */
  #mayHaveChanged = false;
  /** What saves were given, and the store has not confirmed: it may hold another text than `#stored`. */
  #unconfirmed: Set<string> | undefined;
  /** The stored attributes that the last save was made of, and those that it left behind. */
  #written: { readonly stored: StoredAttributes; readonly left: NameTest | undefined } | undefined;

  constructor(
    stored: StoredAttributes,
    private readonly session: BoundedSession & { readonly isNew: boolean },
  ) {
    this.#stored = stored;
  }

  get stored(): StoredAttributes {
    return this.#stored;
  }

  get names(): string[] {
    const { names: stored } = this.#stored;
    if (this.#entries.size === 0) return stored;
    const names = new Set(stored);
    for (const [name, entry] of this.#entries) {
      if (entry.value === undefined) names.delete(name);
      else if (!HIDDEN.has(name)) names.add(name);
    }
    return [...names];
  }

  get(name: string): unknown {
    return this.#read(name).value;
  }

  /** The value for the library's own reads: never throws, and an object is not watched for changes in place. */
  peek(name: string): unknown {
    const known = this.#entries.get(name);
    return known ? known.value : this.#stored.peek(name);
  }

  /** @throws SessionAttributeError or SessionBoundError: now, so that the stack shows the caller */
  set(name: string, value: unknown): void {
    this.#set(name, value, this.#textToSet(name, value));
  }

  /** Does not write again what the store has: that could undo a change of another request. @throws as `set()` does */
  assign(name: string, value: unknown): void {
    const text = this.#textToSet(name, value);
    if (this.#unconfirmed?.has(name) || !this.#stored.holds(name, text)) return this.#set(name, value, text);
    this.#content = undefined;
    this.#mayHaveChanged ||= canChangeInPlace(value);
    if (text === null) this.#entries.delete(name);
    else this.#entries.set(name, { name, value, assigned: false, text, isRaw: false });
  }

  /** When `set` throws, the attribute stays as it was, also where that has changed the object in place. */
  update(name: string, set: (current: unknown) => void): void {
    const entry = this.#read(name);
    const text = canChangeInPlace(entry.value) ? this.#stored.textOf(entry.value) : undefined;
    try {
      set(entry.value);
    } catch (error) {
      // Without a look at the bounds: an object that had grown too large before is refused where it is saved.
      if (text !== undefined && !this.#stored.hasText(entry.value, text))
        this.#entries.set(name, { ...entry, value: readText(this.#stored.serializer, text) });
      throw error;
    }
  }

  encode(name: string, value: unknown): string {
    const text = this.#fitting(name, this.#stored.encode(name, value));
    this.#admitted(name, text);
    this.#isSent(name);
    return text;
  }

  isChanged(name: string): boolean {
    const entry = this.#entries.get(name);
    return entry !== undefined && (entry.assigned || this.#changeInPlace(entry) !== undefined);
  }

  get hasSet(): boolean {
    if (this.#wasSet) for (const entry of this.#entries.values()) if (this.#isWritable(entry)) return true;
    return false;
  }

  /** Whether `changes()` has objects that were changed in place. Encodes each object that was read. */
  get hasChangedInPlace(): boolean {
    if (!this.#mayHaveChanged) return false;
    for (const entry of this.#entries.values()) if (this.#changeInPlace(entry) !== undefined) return true;
    return false;
  }

  /** Until the promises that are settled now have had their turn, no object is compared again unless one is read. */
  rest(): void {
    if (!this.#mayHaveChanged) return;
    this.#mayHaveChanged = false;
    process.nextTick(() => (this.#mayHaveChanged = true));
  }

  /** Forgets these attributes. The next save, which rotates the session, must make the store forget them as well. */
  leave(isLeft: NameTest): void {
    this.#stored.leave(isLeft);
    this.#content = undefined;
    for (const name of this.#entries.keys()) if (isLeft(name)) this.#entries.delete(name);
  }

  discard(): void {
    this.#entries.clear();
    this.#wasSet = false;
    this.#content = undefined;
  }

  replaceBy(loaded: TrackedAttributes): void {
    this.#stored = loaded.#stored;
    this.discard();
  }

  changes(): Map<string, string | null> {
    const changes = new Map<string, string | null>();
    let inPlace: string | undefined;
    for (const entry of this.#entries.values()) {
      const { name, text: known } = entry;
      const change = this.#change(entry);
      if (change === undefined) continue;
      changes.set(name, change);
      if (change !== known) inPlace = name;
    }
    if (inPlace !== undefined) this.#assertFits(changes, inPlace);
    return changes;
  }

  sent(changes: AttributeChanges): void {
    this.#written = { stored: this.#stored, left: this.#stored.left };
    for (const [name, text] of changes) {
      this.#isSent(name);
      const entry = this.#entries.get(name);
      if (entry && !entry.assigned && entry.text !== text) entry.isSent = true;
    }
  }

  get leavesMore(): boolean {
    const { left } = this.#stored;
    return left !== undefined && left !== this.#written?.left;
  }

  /** Records that the store has made the last save that was sent. The application may have changed more since. */
  saved(changes: AttributeChanges): void {
    const { stored, left } = this.#written!;
    // The session was loaded again during the save.
    if (stored !== this.#stored) return;
    this.#content = undefined;
    stored.saved(changes, left);
    for (const [name, text] of changes) {
      this.#unconfirmed?.delete(name);
      const entry = this.#entries.get(name);
      if (!entry || this.#isStillDue(entry, text)) continue;
      Object.assign(entry, { assigned: false, text, isRaw: false, isSent: false });
    }
  }

  /** Takes over the text that the store has now. A value that the application changed stays to be written. */
  refresh(name: string, text: string | undefined): void {
    const isOwn = this.isChanged(name);
    this.#content = undefined;
    this.#stored.replace(name, text);
    this.#unconfirmed?.delete(name);
    if (!isOwn) this.#entries.delete(name);
  }

  /** Whether an attribute was set again after a save with this text of it, or must be: somebody has signed in since. */
  #isStillDue({ name, assigned, text: current }: Entry, text: string | null): boolean {
    const { left } = this.#stored;
    return (
      assigned &&
      (current !== text || this.#stored.isLeft(name) || (left !== undefined && name === PRINCIPAL_ATTRIBUTE))
    );
  }

  #read(name: string): Entry {
    const entry = this.#entries.get(name) ?? this.#decoded(name);
    this.#mayHaveChanged ||= canChangeInPlace(entry.value);
    return entry;
  }

  #decoded(name: string): Entry {
    const value = this.#stored.decode(name);
    const text = canChangeInPlace(value) ? this.#stored.text(name) : undefined;
    const entry: Entry = { name, value, assigned: false, text, isRaw: true };
    if (value !== undefined) this.#entries.set(name, entry);
    return entry;
  }

  #isSent(name: string): void {
    (this.#unconfirmed ??= new Set()).add(name);
  }

  #textToSet(name: string, value: unknown): string | null {
    assertName(name);
    return value === undefined || value === null ? null : this.#stored.encode(name, value);
  }

  #set(name: string, value: unknown, text: string | null): void {
    if (text !== null) this.#fitting(name, text);
    this.#counted.now = this.#admitted(name, text);
    this.#mayHaveChanged ||= canChangeInPlace(value);
    this.#entries.set(name, { name, value: value ?? undefined, assigned: true, text, isRaw: false });
    this.#wasSet = true;
  }

  #fitting(name: string, text: string): string {
    assertAttributeFits(this.session, name, text, this.#stored.has(name));
    return text;
  }

  get #counted(): Counted {
    if (this.#content) return this.#content;
    const stored = SessionContent.of(this.#stored.texts);
    let now = stored;
    for (const { name, assigned, text } of this.#entries.values()) {
      if (assigned) now = now.with(name, this.#stored.unread(name), text);
    }
    return (this.#content = { stored, now });
  }

  #admitted(name: string, text: string | null): SessionContent {
    const entry = this.#entries.get(name);
    const { now, stored } = this.#counted;
    const content = now.with(name, entry?.assigned ? entry.text : this.#stored.unread(name), text);
    if (text !== null) assertSessionFits(this.session, name, content, stored);
    return content;
  }

  #assertFits(changes: AttributeChanges, changed: string): void {
    const { stored } = this.#counted;
    let content = stored;
    for (const [name, text] of changes) content = content.with(name, this.#stored.unread(name), text);
    assertSessionFits(this.session, changed, content, stored);
  }

  #change(entry: Entry): string | null | undefined {
    if (!entry.assigned) {
      const changed = this.#changeInPlace(entry);
      return changed === undefined ? undefined : this.#fitting(entry.name, changed);
    }
    if (!this.#isWritable(entry)) return undefined;
    const { name, value, text } = entry;
    // An object may have changed since it was set.
    if (canChangeInPlace(value) && !this.#stored.hasText(value, text!)) {
      const current = this.#fitting(name, this.#stored.encode(name, value));
      this.#counted.now = this.#admitted(name, current);
      entry.text = current;
    }
    return entry.text;
  }

  /** Whether it was set or removed, unless it was removed and the store does not have it. */
  #isWritable({ name, assigned, text }: Entry): boolean {
    if (!assigned) return false;
    // A save that had no reply may have stored it.
    const mayBeStored = !this.session.isNew && this.#unconfirmed?.has(name) === true;
    return text !== null || this.#stored.has(name) || mayBeStored;
  }

  #changeInPlace(entry: Entry): string | undefined {
    const { name, assigned, value, text } = entry;
    if (assigned || !canChangeInPlace(value) || typeof text !== 'string') return undefined;
    if (entry.isSent) return this.#stored.encode(name, value);
    if (this.#stored.hasText(value, text)) return undefined;
    if (entry.isRaw) {
      entry.text = this.#stored.textAsRead(text);
      entry.isRaw = false;
      if (entry.text === undefined || this.#stored.hasText(value, entry.text)) return undefined;
    }
    const current = this.#stored.encode(name, value);
    return current === entry.text ? undefined : current;
  }
}
