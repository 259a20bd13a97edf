/** One check of a contract, which every implementation must pass. */
export interface ContractCheck {
  /** The title: a fact about the implementation. */
  readonly name: string;
  /** The part of the contract, if it has several. */
  readonly group?: string;
  /** The reason why the check is skipped: a part of the contract that the implementation does not offer. */
  readonly skipped?: string;
  /** Rejects when the implementation fails the check. */
  check(): Promise<void>;
}

/** The common functions of Jest, Vitest, node:test and Bun. */
export interface TestRunner {
  /** Defines a group of tests. */
  describe(name: string, register: () => void): unknown;
  /** Defines a test. */
  readonly it: Registers & { readonly skip: Registers };
}

type Registers = (name: string, test: () => Promise<void>) => unknown;

/**
 * Registers checks as tests, in their groups: `registerChecks(checks, { describe, it })`. A check of a part that is not
 * offered becomes a skipped test, with the reason in its title.
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
