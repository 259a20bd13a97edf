import type { Rule } from '../scripts/verification/verification.scripts.js';

const EXAMPLES = 3;

/** What breaks a rule of the data model. */
export interface Finding<Name extends string = Rule> {
  readonly rule: Name;
  /** How many things break it. */
  readonly count: number;
  /** The first three: keys, ids, members or positions. */
  readonly examples: readonly string[];
}

/** Counts what breaks each rule. */
export class FindingCounter<Name extends string = Rule> {
  readonly #findings = new Map<Name, { count: number; readonly examples: string[] }>();

  add(problems: readonly { readonly what: string; readonly rule: Name }[]): void {
    for (const { rule, what } of problems) {
      const found = this.#findings.get(rule) ?? { count: 0, examples: [] };
      this.#findings.set(rule, found);
      found.count++;
      if (found.examples.length < EXAMPLES) found.examples.push(what);
    }
  }

  /** Ordered by rule. */
  get all(): Finding<Name>[] {
    return [...this.#findings.keys()].toSorted().map((rule) => ({ rule, ...this.#findings.get(rule)! }));
  }
}
