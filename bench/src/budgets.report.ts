import { type Comparison, type Results } from './results.js';
import { ratioOf } from './rounds.js';
import { medianOf, number, ratio, roundsOf, table } from './table.js';

/** By how much a ratio may be worse than the recorded one: less is noise. */
const TOLERANCE = 1.3;

/** Each operation of the store beside a script that does the least. */
export function budgetsReport({ comparisons }: Results): string {
  // One at a time, the ratios are nearly the same.
  const shown = comparisons.filter(({ title }) => !title.endsWith(', 1 in flight'));
  const rows = shown.map((comparison) => {
    const of = (figure: string) => roundsOf(comparison, 'ours', figure);
    const beside = (figure: string) => roundsOf(comparison, 'bare', figure);
    const pair = (figure: string) => `${number(medianOf(of(figure)))} / ${number(medianOf(beside(figure)))}`;
    const all = ['commands', 'execution', 'perSecond'].map(pair);
    return [comparison.title, ...all.toSpliced(2, 0, ratio(of('execution'), beside('execution')))];
  });
  const head = ['commands', 'µs in commands', 'ratio', 'per second'];
  return table(['ours / bare', ...head], rows);
}

/** What is worse than recorded: only figures that another machine and another load do not change. */
export function budgetProblems(results: Results, recorded: Results): string[] {
  return results.comparisons.flatMap((comparison) => {
    const before = recorded.comparisons.find(({ title }) => title === comparison.title);
    if (!before) return [`${comparison.title}: not recorded. Run npm run bench -- budgets --write.`];
    const compared = { 'commands per operation': commandsOf, 'time in Redis beside the bare script': timeRatioOf };
    return Object.entries(compared).flatMap(([what, figureOf]) => {
      const [now, then] = [figureOf(comparison), figureOf(before)];
      if (now.least <= then.median * TOLERANCE) return [];
      return [
        `${comparison.title}: ${what} is ${now.least.toFixed(2)} or more, and ${then.median.toFixed(2)} is recorded.`,
      ];
    });
  });
}

/** The median of the rounds, and what three quarters of them exceed: no disturbance of the machine lasts so long. */
interface Figure {
  readonly median: number;
  readonly least: number;
}

function commandsOf(comparison: Comparison): Figure {
  const median = medianOf(roundsOf(comparison, 'ours', 'commands'));
  return { median, least: median };
}

function timeRatioOf(comparison: Comparison): Figure {
  const [ours, bare] = ['ours', 'bare'].map((name) => roundsOf(comparison, name, 'execution'));
  const { median, spread } = ratioOf(ours!, bare!);
  return { median, least: spread[0] };
}
