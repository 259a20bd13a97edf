const EXAMPLES = 3;

export interface Finding<Rule extends string> {
  readonly rule: Rule;
  readonly count: number;
  /** The first three: keys, ids, members or positions. */
  readonly examples: readonly string[];
}

export class FindingCounter<Rule extends string> {
  readonly #findings = new Map<Rule, { count: number; readonly examples: string[] }>();

  add(problems: readonly { readonly what: string; readonly rule: Rule }[]): void {
    for (const { rule, what } of problems) {
      const found = this.#findings.get(rule) ?? { count: 0, examples: [] };
      this.#findings.set(rule, found);
      found.count++;
      if (found.examples.length < EXAMPLES) found.examples.push(what);
    }
  }

  get all(): Finding<Rule>[] {
    return [...this.#findings.keys()].toSorted().map((rule) => ({ rule, ...this.#findings.get(rule)! }));
  }
}
