import type { CreateSession, UpdateSession } from '@nest-session/core/store';
import { Mismatch } from './session.model.js';

/** An attribute that is bound to the visitor. */
export const OF_VISITOR = 'nest-session.visitor.hint';

/** The attributes that a request has changed since the last write: a save writes exactly these. */
export class RequestEdits {
  /** The values that may be written; null for removed. Several: a save without a reply is sent again unchanged. */
  readonly #allowed = new Map<string, (string | null)[]>();
  /** The values that must be written with the next save. */
  readonly #due = new Map<string, string>();
  /** What sign-ins have left behind. When another one or a sign-out takes their place, a save removes it. */
  readonly #left: ((name: string) => boolean)[] = [];
  /** The texts that the store had, as far as the request knows. A session of its own begins with them. */
  #stored = new Map<string, string>();
  #hasLostReply = false;

  /** The request has set an attribute, to be saved later. */
  set(name: string, value: unknown): void {
    const text = this.#allow(name, value);
    // A removed attribute may not have existed.
    if (text === null) this.#due.delete(name);
    else this.#due.set(name, text);
  }

  /** The request updates an attribute, which is written at once. */
  update(name: string, value: unknown): void {
    this.#allow(name, value);
    this.#due.delete(name);
  }

  /** A sign-in leaves these behind. */
  leave(isLeft: (name: string) => boolean): void {
    this.#left.push(isLeft);
    for (const name of this.#due.keys()) if (isLeft(name)) this.#due.delete(name);
    if (this.#hasLostReply) return;
    for (const name of this.#allowed.keys()) if (isLeft(name)) this.#allowed.delete(name);
  }

  expectIn({ attributes, ...change }: CreateSession | UpdateSession): void {
    for (const [name, text] of attributes) {
      const isRemoved = text === null && this.#left.some((isLeft) => isLeft(name));
      const isCarried = change.kind === 'create' && this.#stored.get(name) === text;
      if (!isRemoved && !isCarried && !this.#allowed.get(name)?.includes(text))
        throw new Mismatch(`writes ${name}, which the request has not changed`);
    }
    const isUpdate = 'expected' in change && change.expected !== undefined;
    if (isUpdate || this.#hasLostReply) return;
    for (const [name, text] of this.#due) {
      if (attributes.get(name) !== text) throw new Mismatch(`does not write ${name}, which the request has changed`);
    }
  }

  /** The request knows that these were written. Changes since then are still to be saved. */
  written({ attributes }: CreateSession | UpdateSession): void {
    for (const [name, text] of attributes) {
      const allowed = this.#allowed.get(name) ?? [];
      this.#allowed.set(name, allowed.slice(allowed.indexOf(text) + 1));
      if (this.#due.get(name) === text) this.#due.delete(name);
      if (text !== null) this.#stored.set(name, text);
    }
  }

  /** From now on the request does not know which values were written. */
  loseReply(): void {
    this.#hasLostReply = true;
  }

  /** The request goes on with another session, which has these values. */
  begin(values: Iterable<readonly [name: string, value: unknown]>): void {
    this.#stored = new Map([...values].map(([name, value]) => [name, JSON.stringify(value)]));
    this.#allowed.clear();
    this.#due.clear();
    this.#left.length = 0;
  }

  #allow(name: string, value: unknown): string | null {
    const text = value === null ? null : JSON.stringify(value);
    this.#allowed.set(name, [...(this.#allowed.get(name) ?? []), text]);
    return text;
  }
}
