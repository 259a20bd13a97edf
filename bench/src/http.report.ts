import {
  BARE,
  BY_HAND,
  EXPRESS_SESSION,
  FASTIFY_SESSION,
  FASTIFY_SESSION_STILL,
  ON_EXPRESS,
  ON_FASTIFY,
  OURS,
  SPRING,
} from './http.scenarios.js';
import { type Comparison, type Results } from './results.js';
import { medianOf, number, ratio, roundsOf, table } from './table.js';

/** The table that tells most. */
export function ratiosReport(results: Results): string {
  const ratios = httpRatios(results);
  // Recorded results may be older than a contender.
  const rivals = RIVALS.map(({ title }) => title).filter((title) => ratios.some(({ rival }) => rival === title));
  const rows = results.comparisons.map(({ title: scenario }) => [
    scenario,
    ...rivals.map((rival) => {
      const found = ratios.find((each) => each.scenario === scenario && each.rival === rival);
      return found ? ratio(found.values, found.beside) : '-';
    }),
  ]);
  return table(['requests/s of ours, divided by those of', ...rivals], rows);
}

const FIGURES = { perSecond: 'requests/s', nodeTime: 'Node µs', redisTime: 'Redis µs' };

/** One table for each figure. */
export function httpReport({ comparisons }: Results): string {
  const names = [...ON_EXPRESS, ...ON_FASTIFY].filter((name) =>
    comparisons.some(({ contenders }) => contenders.some((each) => each.name === name)),
  );
  const tables = Object.entries(FIGURES).map(([figure, title]) => {
    const cell = (comparison: Comparison, name: string) => {
      const rounds = roundsOf(comparison, name, figure);
      return rounds.length === 0 ? '-' : number(medianOf(rounds));
    };
    return table(
      [title, ...names],
      comparisons.map((each) => [each.title, ...names.map((name) => cell(each, name))]),
    );
  });
  return tables.join('\n\n');
}

interface Rival {
  readonly title: string;
  /** Of several contenders, the better one counts. */
  readonly names: readonly string[];
  readonly ours: string;
}

const RIVALS: readonly Rival[] = [
  { title: 'express-session (the better)', names: EXPRESS_SESSION, ours: OURS.express },
  ...[SPRING, BY_HAND.express, BARE.express].map((name) => ({ title: name, names: [name], ours: OURS.express })),
  ...[FASTIFY_SESSION, FASTIFY_SESSION_STILL, BY_HAND.fastify, BARE.fastify].map((name) => {
    return { title: name, names: [name], ours: OURS.fastify };
  }),
];

/** Above 1 where ours is better. */
interface HttpRatio {
  readonly scenario: string;
  readonly rival: string;
  readonly isLimit: boolean;
  readonly values: readonly number[];
  readonly beside: readonly number[];
}

export function httpRatios({ comparisons }: Results): HttpRatio[] {
  return comparisons.flatMap((comparison) =>
    RIVALS.flatMap(({ title, names, ours }) => {
      const [best] = names
        .map((name) => roundsOf(comparison, name, 'perSecond'))
        .filter((rounds) => rounds.length > 0)
        .toSorted((one, other) => medianOf(other) - medianOf(one));
      if (!best) return [];
      const values = roundsOf(comparison, ours, 'perSecond');
      const isLimit = [...Object.values<string>(BARE), ...Object.values(BY_HAND)].includes(title);
      return [{ scenario: comparison.title, rival: title, isLimit, values, beside: best }];
    }),
  );
}
