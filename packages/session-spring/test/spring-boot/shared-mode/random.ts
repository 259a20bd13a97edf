// Random values and names, the same ones for a seed.

const TEXTS = [
  '',
  'text',
  '@class',
  'java.util.ArrayList',
  'a"b\\c/',
  'ä€😀',
  '\u0000\u001f\u2028',
  '\ud800',
  '__proto__',
  '5',
];
const NUMBERS = [
  0,
  -1,
  1.5,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 53 - 1,
  2 ** 53,
  1e21,
  1e-7,
  0.1,
  5e-324,
  1.7976931348623157e308,
];
const NAMES = ['cart', 'color', 'x:y z', 'ключ', '@class', 'sessionAttr:a', 'user.name', '"', '😀'];

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** From 0 up to 1; mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }

  name(): string {
    return this.of(NAMES);
  }

  /** A value that an application may want to store, among them some that Java cannot read. */
  value(depth = 0): unknown {
    const kind = this.below(depth > 3 ? 4 : 7);
    if (kind === 0) return this.of(TEXTS);
    if (kind === 1) return this.of(NUMBERS);
    if (kind === 2) return this.next() < 0.5;
    if (kind === 3) return depth === 0 ? this.below(1000) : null;
    const members = Array.from({ length: this.below(4) }, () => this.value(depth + 1));
    if (kind < 5) return this.next() < 0.2 ? ['java.util.ArrayList', members] : members;
    return Object.fromEntries(members.map((member) => [this.next() < 0.7 ? this.name() : this.of(TEXTS), member]));
  }
}
