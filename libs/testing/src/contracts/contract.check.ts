/** Something that is true of every implementation of a contract. */
export interface ContractCheck {
  /** A sentence about the implementation. */
  readonly name: string;
  /** What it is about, where a contract has several parts. */
  readonly group?: string;
  /** Why it is not run: a part of the contract that the implementation does not offer. */
  readonly skipped?: string;
  /** Rejects when the implementation does not do what `name` says. */
  check(): Promise<void>;
}

/** What Jest, Vitest, node:test and Bun have in common. */
export interface TestRunner {
  /** Defines a group of tests. */
  describe(name: string, register: () => void): unknown;
  /** Defines a test. */
  readonly it: Registers & { readonly skip: Registers };
}

type Registers = (name: string, test: () => Promise<void>) => unknown;

/**
 * Registers checks as tests, under their groups: `registerChecks(checks, { describe, it })`. One that is not run is a
 * skipped test, with the reason in its name.
 */
export function registerChecks(checks: readonly ContractCheck[], { describe, it }: TestRunner): void {
  const register = ({ name, skipped, check }: ContractCheck) => {
    if (skipped === undefined) it(name, () => check());
    else it.skip(`${name} (${skipped})`, () => check());
  };
  for (const group of new Set(checks.map((each) => each.group))) {
    const members = checks.filter((each) => each.group === group);
    if (group === undefined) members.forEach(register);
    else describe(group, () => members.forEach(register));
  }
}
