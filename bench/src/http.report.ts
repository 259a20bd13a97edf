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
import { medianOf, number, range, ratio, roundsOf, table } from './table.js';

/** The table of ratios that tells most. */
export function ratiosReport(results: Results): string {
  return ratioTable(results, 'perSecond', 'requests/s of ours, divided by those of');
}

/** The ratios of processor time, and one table for each scenario. */
export function httpReport(results: Results): string {
  const ratios = ratioTable(results, 'nodeTime', 'Node µs per request, divided by ours');
  return [ratios, ...results.comparisons.map(scenarioTable)].join('\n\n');
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

export function httpRatios({ comparisons }: Results, figure: 'perSecond' | 'nodeTime'): HttpRatio[] {
  const isTime = figure === 'nodeTime';
  return comparisons.flatMap((comparison) =>
    RIVALS.flatMap(({ title, names, ours }) => {
      const [best] = names
        .map((name) => roundsOf(comparison, name, figure))
        .filter((rounds) => rounds.length > 0)
        .toSorted((one, other) => (isTime ? -1 : 1) * (medianOf(other) - medianOf(one)));
      if (!best) return [];
      const own = roundsOf(comparison, ours, figure);
      const [values, beside] = isTime ? [best, own] : [own, best];
      const isLimit = [...Object.values<string>(BARE), ...Object.values(BY_HAND)].includes(title);
      return [{ scenario: comparison.title, rival: title, isLimit, values, beside }];
    }),
  );
}

function ratioTable(results: Results, figure: 'perSecond' | 'nodeTime', title: string): string {
  const ratios = httpRatios(results, figure);
  // Recorded results may be older than a contender.
  const rivals = RIVALS.map(({ title }) => title).filter((title) => ratios.some(({ rival }) => rival === title));
  const rows = results.comparisons.map(({ title: scenario }) => [
    scenario,
    ...rivals.map((rival) => {
      const found = ratios.find((each) => each.scenario === scenario && each.rival === rival);
      return found ? ratio(found.values, found.beside) : '-';
    }),
  ]);
  return table([title, ...rivals], rows);
}

function scenarioTable(comparison: Comparison): string {
  const names = [...ON_EXPRESS, ...ON_FASTIFY].filter((name) =>
    comparison.contenders.some((each) => each.name === name),
  );
  const rows = names.map((name) => {
    const of = (figure: string) => roundsOf(comparison, name, figure);
    const perSecond = of('perSecond');
    const medians = ['p50', 'p99', 'nodeTime', 'redisTime', 'commands', 'serverBusy', 'loadBusy'].map((figure) =>
      number(medianOf(of(figure))),
    );
    return [name, number(medianOf(perSecond)), range(perSecond), ...medians];
  });
  const head = [
    'requests/s',
    'range',
    'p50 ms',
    'p99 ms',
    'Node µs',
    'Redis µs',
    'commands',
    'server busy',
    'load busy',
  ];
  return table([comparison.title, ...head], rows);
}
