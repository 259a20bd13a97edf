import type { AttributeChanges } from './session-change.js';
import { PRINCIPAL_NAME_INDEX_NAME } from './session.js';
import { assertAttributeFits, assertSessionFits, SessionContent } from './session-bounds.js';
import { StoredAttributes } from './stored-attributes.js';

interface Entry {
  readonly name: string;
  readonly value: unknown;
  /** Whether the application set it since the last save; otherwise it was only read. */
  assigned: boolean;
  /**
   * The text when the attribute was set, read or last saved, to notice an object that is changed in place; null for a
   * removed attribute. Undefined for a value that was only read and cannot change in place, or cannot be encoded.
   */
  text: string | null | undefined;
  /** Whether `text` is the stored text, which another language may have formatted differently. */
  isRaw: boolean;
}

/** Attributes that remember which of them must be written: those that were set, and objects changed in place. */
export class TrackedAttributes {
  readonly #stored: StoredAttributes;
  /** Only attributes that the application read or set; the others are not decoded. */
  readonly #entries = new Map<string, Entry>();
  /** Whether the application set or removed any: most requests only read. */
  #wasSet = false;
  /** What the store holds, and what it will hold with what was set; undefined until something is set after a save. */
  #content: { readonly stored: SessionContent; now: SessionContent } | undefined;
  /** Whether no object can have changed: see `rest()`. */
  #isAtRest = false;
  /** What saves were given, and the store has not confirmed: it may hold another text than `#stored`. */
  #unconfirmed: Set<string> | undefined;

  constructor(stored: StoredAttributes) {
    this.#stored = stored;
  }

  get names(): string[] {
    if (this.#entries.size === 0) return this.#stored.names;
    const names = new Set(this.#stored.names);
    for (const [name, entry] of this.#entries) {
      if (entry.value === undefined) names.delete(name);
      else names.add(name);
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

  /** The value that a text of an attribute has: a fresh object that is not watched for changes in place. */
  valueOf(name: string, text: string | undefined): unknown {
    return this.#stored.decodeText(name, text);
  }

  /** The text in the store, as far as this session knows. */
  storedText(name: string): string | undefined {
    return this.#stored.text(name);
  }

  /**
   * @throws SessionAttributeError when the value cannot be stored, and SessionBoundError when it is too large: now, so
   * that the stack shows the caller
   */
  set(name: string, value: unknown): void {
    this.#set(name, value, this.#textToSet(name, value));
  }

  /**
   * The same, but a value that the store has is not written again, because that could undo a change of another request. It
   * is watched for changes in place. @throws as `set()` does
   */
  assign(name: string, value: unknown): void {
    const text = this.#textToSet(name, value);
    if (this.#unconfirmed?.has(name) || !this.#stored.holds(name, text)) return this.#set(name, value, text);
    this.#content = undefined;
    this.#isAtRest = false;
    if (text === null) this.#entries.delete(name);
    else this.#entries.set(name, { name, value, assigned: false, text, isRaw: false });
  }

  /** The text of a value that will be written. @throws as `set()` does */
  encode(name: string, value: unknown): string {
    const text = this.#fitting(name, this.#stored.encode(name, value));
    this.#admitted(name, text);
    this.#isSent(name);
    return text;
  }

  /** Whether the application set it, or changed it in place, since the last save. */
  isChanged(name: string): boolean {
    const entry = this.#entries.get(name);
    return entry !== undefined && (entry.assigned || this.#changeInPlace(entry) !== undefined);
  }

  /** Whether `changes()` has attributes that were set or removed. */
  get hasSet(): boolean {
    if (this.#wasSet) for (const entry of this.#entries.values()) if (this.#isWritable(entry)) return true;
    return false;
  }

  /** Whether `changes()` has objects that were changed in place. Encodes each object that was read. */
  get hasChangedInPlace(): boolean {
    if (this.#isAtRest) return false;
    for (const entry of this.#entries.values()) if (this.#changeInPlace(entry) !== undefined) return true;
    return false;
  }

  /**
   * Call it when the application has finished, and nothing has changed in place. Until the promises that are settled now
   * have had their turn, no object is compared again unless one is read.
   */
  rest(): void {
    if (this.#entries.size === 0) return;
    this.#isAtRest = true;
    process.nextTick(() => (this.#isAtRest = false));
  }

  /** The same attributes without the changes that are not saved. */
  asStored(): TrackedAttributes {
    return new TrackedAttributes(this.#stored);
  }

  /** Those whose names are accepted, with their changes. */
  only(isAccepted: (name: string) => boolean): TrackedAttributes {
    const accepted = new TrackedAttributes(this.#stored.only(isAccepted));
    // Copies: a save of these attributes, which is in flight, says nothing of the others.
    for (const [name, entry] of this.#entries) if (isAccepted(name)) accepted.#entries.set(name, { ...entry });
    accepted.#wasSet = this.#wasSet;
    accepted.#unconfirmed = this.#unconfirmed && new Set(this.#unconfirmed);
    return accepted;
  }

  /** What has to be written, by name. */
  changes(): Map<string, string | null> {
    const changes = new Map<string, string | null>();
    let inPlace: string | undefined;
    for (const entry of this.#entries.values()) {
      const { text: known } = entry;
      const change = this.#change(entry);
      if (change === undefined) continue;
      changes.set(entry.name, change);
      this.#isSent(entry.name);
      if (change !== known) inPlace = entry.name;
    }
    if (inPlace !== undefined) this.#assertFits(changes, inPlace);
    return changes;
  }

  /** Records that the store wrote these changes. Later changes of the application are still to be written. */
  saved(changes: AttributeChanges): void {
    this.#content = undefined;
    for (const [name, change] of changes) {
      this.#stored.replace(name, change ?? undefined);
      this.#unconfirmed?.delete(name);
      const entry = this.#entries.get(name);
      if (!entry) continue;
      // The attribute was set again in the meantime.
      if (entry.assigned && entry.text !== change) continue;
      entry.assigned = false;
      entry.text = change;
      entry.isRaw = false;
    }
  }

  /**
   * Records that the store had written these changes when somebody signed in. What the sign-in keeps need not be written
   * again, which could undo a later change of another request.
   */
  savedBefore(changes: AttributeChanges, isKept: (name: string) => boolean): void {
    const kept = [...changes].filter(([name]) => name !== PRINCIPAL_NAME_INDEX_NAME && isKept(name));
    this.saved(new Map(kept.filter(([name]) => this.#entries.has(name))));
  }

  /** Takes over the text that the store has now. A value that the application changed stays to be written. */
  refresh(name: string, text: string | undefined): void {
    const isOwn = this.isChanged(name);
    this.#content = undefined;
    this.#stored.replace(name, text);
    this.#unconfirmed?.delete(name);
    if (!isOwn) this.#entries.delete(name);
  }

  #read(name: string): Entry {
    this.#isAtRest = false;
    const known = this.#entries.get(name);
    if (known) return known;
    const value = this.#stored.decode(name);
    const text = isObject(value) ? this.#stored.text(name) : undefined;
    const entry: Entry = { name, value, assigned: false, text, isRaw: true };
    if (value !== undefined) this.#entries.set(name, entry);
    return entry;
  }

  #isSent(name: string): void {
    (this.#unconfirmed ??= new Set()).add(name);
  }

  /** null for a value that removes the attribute. */
  #textToSet(name: string, value: unknown): string | null {
    assertName(name);
    return value === undefined || value === null ? null : this.#stored.encode(name, value);
  }

  #set(name: string, value: unknown, text: string | null): void {
    if (text !== null) this.#fitting(name, text);
    this.#counted.now = this.#admitted(name, text);
    this.#entries.set(name, { name, value: value ?? undefined, assigned: true, text, isRaw: false });
    this.#wasSet = true;
  }

  /** The text of an attribute, which fits by itself. */
  #fitting(name: string, text: string): string {
    assertAttributeFits(this.#stored.owner, name, text, this.#stored.has(name));
    return text;
  }

  get #counted(): { readonly stored: SessionContent; now: SessionContent } {
    return (this.#content ??= this.#count());
  }

  #count(): { readonly stored: SessionContent; now: SessionContent } {
    const stored = SessionContent.of(this.#stored.texts);
    let now = stored;
    for (const { name, assigned, text } of this.#entries.values()) {
      if (assigned) now = now.with(name, this.#stored.unread(name), text);
    }
    return { stored, now };
  }

  /** What the session will hold when an attribute is set to this text, or removed. @throws SessionBoundError */
  #admitted(name: string, text: string | null): SessionContent {
    const entry = this.#entries.get(name);
    const { now, stored } = this.#counted;
    const content = now.with(name, entry?.assigned ? entry.text : this.#stored.unread(name), text);
    if (text !== null) assertSessionFits(this.#stored.owner, name, content, stored);
    return content;
  }

  /** Objects that were changed in place are counted now; what was set was counted then. */
  #assertFits(changes: AttributeChanges, changed: string): void {
    const { stored } = this.#counted;
    let content = stored;
    for (const [name, text] of changes) content = content.with(name, this.#stored.unread(name), text);
    assertSessionFits(this.#stored.owner, changed, content, stored);
  }

  /** The text to write, or null to remove the attribute; undefined when there is nothing to write. */
  #change(entry: Entry): string | null | undefined {
    if (!entry.assigned) return this.#changeInPlace(entry);
    if (!this.#isWritable(entry)) return undefined;
    const { name, value, text } = entry;
    // An object may have changed since it was set.
    if (isObject(value) && !this.#stored.hasText(value, text!)) {
      const current = this.#fitting(name, this.#stored.encode(name, value));
      this.#counted.now = this.#admitted(name, current);
      entry.text = current;
    }
    return entry.text;
  }

  /** Whether it was set or removed, unless it was removed and the store does not have it. */
  #isWritable({ name, assigned, text }: Entry): boolean {
    return assigned && (text !== null || this.#stored.has(name));
  }

  /** The new text of an object that was changed in place since it was read or saved. */
  #changeInPlace(entry: Entry): string | undefined {
    const { name, assigned, value, text } = entry;
    if (assigned || !isObject(value) || typeof text !== 'string') return undefined;
    if (this.#stored.hasText(value, text)) return undefined;
    if (entry.isRaw) {
      entry.text = this.#stored.textAsRead(text);
      entry.isRaw = false;
      if (entry.text === undefined || this.#stored.hasText(value, entry.text)) return undefined;
    }
    const current = this.#stored.encode(name, value);
    return current === entry.text ? undefined : this.#fitting(name, current);
  }
}

/** @throws TypeError for a name that stores could not keep: half of a surrogate pair has no UTF-8 encoding */
export function assertName(name: unknown): void {
  if (typeof name !== 'string' || name === '' || /\p{Surrogate}/u.test(name)) {
    throw new TypeError('The name of a session attribute is a non-empty string of well-formed Unicode');
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
