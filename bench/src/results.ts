import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { dirname } from 'node:path';

/** A figure of a contender: one value for each round. The rounds of all contenders are interleaved. */
export type Rounds = Record<string, readonly number[]>;

export interface Comparison {
  readonly title: string;
  readonly contenders: readonly { readonly name: string; readonly figures: Rounds }[];
}

/** What a subject has measured, as it stands in bench/results. */
export interface Results {
  readonly subject: string;
  /** Of the last run. */
  readonly date: string;
  /** How many runs the rounds are of. */
  readonly runs: number;
  readonly node: string;
  readonly redis?: string;
  readonly machine: string;
  readonly isQuick: boolean;
  readonly comparisons: readonly Comparison[];
}

// Set by bench.main.ts.
const { BENCH_QUICK, BENCH_JSON, BENCH_APPEND, BENCH_CHECK } = process.env;

/** Few rounds: to see that a benchmark works, and what is far off. */
export const isQuick = BENCH_QUICK !== undefined;

/** The file with results that these must not be far behind. */
export const recordedFile = BENCH_CHECK;

/** Writes them down if there is a file for them. */
export async function writeResults(
  subject: string,
  comparisons: readonly Comparison[],
  redis?: string,
): Promise<Results> {
  const measured: Results = {
    subject,
    runs: 1,
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    ...(redis === undefined ? {} : { redis }),
    machine: machine(),
    isQuick,
    comparisons: comparisons.map(({ title, contenders }) => ({
      title,
      contenders: contenders.map(({ name, figures }) => ({ name, figures: rounded(figures) })),
    })),
  };
  if (BENCH_JSON === undefined) return measured;
  const results = BENCH_APPEND === undefined ? measured : added(await readResults(BENCH_JSON), measured);
  await mkdir(dirname(BENCH_JSON), { recursive: true });
  await writeFile(BENCH_JSON, `${JSON.stringify(results)}\n`);
  return results;
}

/** The rounds of both runs. Where one of them is shorter, or on another machine, their medians would say nothing. */
function added(recorded: Results, measured: Results): Results {
  for (const fact of ['node', 'redis', 'machine', 'isQuick'] as const) {
    if (recorded[fact] !== measured[fact]) throw new Error(`The recorded run has another ${fact}: ${recorded[fact]}`);
  }
  const comparisons = measured.comparisons.map(({ title, contenders }) => {
    const before = recorded.comparisons.find((each) => each.title === title)?.contenders;
    const both = contenders.map(({ name, figures }) => {
      const earlier = before?.find((each) => each.name === name)?.figures;
      if (!earlier) throw new Error(`The recorded run has no ${name} in ${title}`);
      return { name, figures: concatenated(earlier, figures) };
    });
    return { title, contenders: both };
  });
  return { ...measured, runs: recorded.runs + measured.runs, comparisons };
}

function concatenated(earlier: Rounds, later: Rounds): Rounds {
  return Object.fromEntries(Object.entries(later).map(([name, values]) => [name, [...earlier[name]!, ...values]]));
}

/** The figures of rounds, by name, out of the rounds. */
export function byFigure<Figures extends object>(rounds: readonly Figures[]): Rounds {
  const names = Object.keys(rounds[0] ?? {}) as (keyof Figures & string)[];
  return Object.fromEntries(names.map((name) => [name, rounds.map((figures) => figures[name] as number)]));
}

function machine(): string {
  return `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`;
}

/** Four digits are more than any of these figures has that is no count. */
function rounded(figures: Rounds): Rounds {
  const short = (value: number) => (Number.isInteger(value) ? value : Number(value.toPrecision(4)));
  return Object.fromEntries(Object.entries(figures).map(([name, values]) => [name, values.map(short)]));
}

export async function readResults(file: string): Promise<Results> {
  return JSON.parse(await readFile(file, 'utf8')) as Results;
}
