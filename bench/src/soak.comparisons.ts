import type { Calls } from './soak.clients.js';
import type { Look, Schedule } from './soak.day.js';
import type { Answers } from './soak.instance.js';
import type { RedisFigures } from './soak.redis.js';
import type { Comparison, Rounds } from './results.js';

/** What a soak has found. */
export interface SoakFindings {
  readonly schedule: Schedule;
  readonly looks: readonly Look[];
  readonly calls: Calls & { readonly failedInFailovers: number };
  /** How many different events of each type were heard. */
  readonly events: Readonly<Record<string, number>>;
  /** When every session has ended. `findings`: of `verify`. */
  readonly end: Answers['store'] & { readonly findings: number };
  /** Before the first session, and when all of them have ended. */
  readonly before: RedisFigures;
  readonly afterwards: RedisFigures;
}

/** As it stands in bench/results, for `SoakFigures`: a round is a look. */
export function comparisonsOf(soak: SoakFindings): Comparison[] {
  const { schedule, looks, calls, events, end, before, afterwards } = soak;
  const column = (name: keyof RedisFigures | 'minute' | 'sessions' | 'lag') => looks.map((look) => look[name]);
  const ofInstances = (name: 'heap' | 'resident') =>
    Array.from({ length: schedule.lasting }, (_, i) => [`${name} ${i}`, looks.map((look) => look[name][i]!)] as const);
  const redis = { memory: column('memory'), dataset: column('dataset'), keys: column('keys') };
  const { deploys, failovers, length, instances } = schedule;
  return [
    {
      title: 'looks',
      contenders: [
        { name: 'instances', figures: Object.fromEntries([...ofInstances('heap'), ...ofInstances('resident')]) },
        { name: 'Redis', figures: { ...redis, sessions: column('sessions'), lag: column('lag') } },
      ],
    },
    {
      title: 'times',
      contenders: [{ name: 'minutes', figures: { looks: column('minute'), deploys, failovers } }],
    },
    {
      title: 'counts',
      contenders: [
        { name: 'schedule', figures: single({ minutes: length, instances }) },
        { name: 'calls', figures: single(calls) },
        { name: 'events', figures: single(events) },
        { name: 'end', figures: single(end) },
        { name: 'before', figures: single(before) },
        { name: 'afterwards', figures: single(afterwards) },
      ],
    },
  ];
}

function single(figures: object): Rounds {
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, [value as number]]));
}
