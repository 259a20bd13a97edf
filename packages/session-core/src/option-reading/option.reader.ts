import { InvalidSessionOptionsError } from '../errors/session.errors.js';
import { type Duration, durationText, parseDuration } from './duration.js';

interface DurationRules {
  /** Milliseconds. */
  readonly atLeast?: number;
  readonly atMost?: number;
  /** Whether `'never'` is allowed. It reads as Infinity. */
  readonly never?: boolean;
  readonly wholeSeconds?: boolean;
}

/** Reads the options of a module one by one. `finish()` reports all problems in one error, and unknown options. */
export class OptionReader {
  readonly #given: Readonly<Record<string, unknown>>;
  readonly #names = new Set<string>();

  constructor(
    private readonly module: string,
    given: object | undefined,
    private readonly path = '',
    private readonly problems: string[] = [],
  ) {
    this.#given = isRecord(given) ? given : {};
    if (given !== undefined && !isRecord(given))
      problems.push(`${path === '' ? 'The argument' : `Option \`${path}\``} must be an object.`);
  }

  duration(name: string, fallback: string, rules?: DurationRules): number;
  duration(name: string, fallback: undefined, rules?: DurationRules): number | undefined;
  duration(name: string, fallback: string | undefined, rules: DurationRules = {}): number | undefined {
    const value = (this.#read(name) ?? fallback) as Duration | undefined;
    if (value === undefined) return undefined;
    if (rules.never && value === 'never') return Infinity;
    const ms = parseDuration(value);
    // A positive number without a unit was not meant to be 'never'.
    const orNever = rules.never && !(Number(value) > 0) ? ", or 'never'" : '';
    const problem = typeof ms === 'string' ? ms + orNever : durationProblem(value, ms, rules);
    return problem === undefined ? Number(ms) : this.#refuse(name, problem, fallback === undefined ? undefined : 0);
  }

  integer(name: string, fallback: number, range: { atLeast: number; atMost: number }): number {
    const value = this.#read(name) ?? fallback;
    if (Number.isInteger(value) && Number(value) >= range.atLeast && Number(value) <= range.atMost)
      return Number(value);
    return this.#refuse(name, `must be a whole number from ${range.atLeast} to ${range.atMost}`, fallback);
  }

  boolean(name: string, fallback: boolean): boolean {
    const value = this.#read(name) ?? fallback;
    return typeof value === 'boolean' ? value : this.#refuse(name, 'must be true or false', fallback);
  }

  text<T extends string | undefined>(
    name: string,
    fallback: T,
    problem: (value: string) => string | undefined,
  ): string | T {
    const value = this.#read(name);
    if (value === undefined) return fallback;
    if (typeof value !== 'string') return this.#refuse(name, 'must be a string', fallback);
    const found = problem(value);
    return found === undefined ? value : this.#refuse(name, found, fallback);
  }

  oneOf<T extends string | boolean>(name: string, allowed: readonly T[], fallback: T): T {
    const value = this.#read(name) ?? fallback;
    const found = allowed.find((candidate) => candidate === value);
    return (
      found ?? this.#refuse(name, `must be one of ${allowed.map((each) => JSON.stringify(each)).join(', ')}`, fallback)
    );
  }

  /** Any value that passes `isValid`; undefined when the option is not set. */
  value<T>(name: string, isValid: (value: unknown) => value is T, what: string): T | undefined {
    const value = this.#read(name);
    if (value === undefined || isValid(value)) return value;
    return this.#refuse(name, `must be ${what}`, undefined);
  }

  /** A reader for the options inside an option. Call its `finish()` when all of them are read. */
  section(name: string): OptionReader {
    const value = this.#read(name);
    return new OptionReader(this.module, value as object | undefined, this.#nameOf(name), this.problems);
  }

  problem(sentence: string): void {
    this.problems.push(sentence);
  }

  /**
   * @param instead what to do instead of an option of another module or library, by its name
   * @throws InvalidSessionOptionsError with all problems, from the outermost reader only
   */
  finish(instead: Readonly<Record<string, string>> = {}): void {
    for (const name of Object.keys(this.#given)) {
      if (this.#names.has(name) || this.#given[name] === undefined) continue;
      const help = Object.hasOwn(instead, name) ? instead[name] : `known are ${[...this.#names].join(', ')}`;
      this.problems.push(`Unknown option \`${this.#nameOf(name)}\`: ${help}.`);
    }
    if (this.path === '' && this.problems.length > 0) throw new InvalidSessionOptionsError(this.module, this.problems);
  }

  #read(name: string): unknown {
    this.#names.add(name);
    return this.#given[name];
  }

  #nameOf(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`;
  }

  #refuse<T>(name: string, problem: string, fallback: T): T {
    this.problems.push(`Option \`${this.#nameOf(name)}\` ${problem}.`);
    return fallback;
  }
}

function durationProblem(value: Duration, ms: number, rules: DurationRules): string | undefined {
  const { atLeast = 0, atMost = Infinity, wholeSeconds = false } = rules;
  if (ms < atLeast) return `is ${value}: it must be at least ${durationText(atLeast)}`;
  if (ms > atMost) return `is ${value}: it must be at most ${durationText(atMost)}`;
  return wholeSeconds && ms % 1000 !== 0 ? 'must be a number of whole seconds' : undefined;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value switches something on or off, or says how it is to be. */
export function isBooleanOrObject(value: unknown): value is boolean | object {
  return typeof value === 'boolean' || isRecord(value);
}
