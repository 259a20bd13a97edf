import { randomBytes } from 'node:crypto';
import { InvalidSessionOptionsError } from '@nest-session/core';
import { endingOptions } from '../../../session-cli/src/command/end.command.js';
import {
  type RedisSessionModuleOptions,
  resolveRedisSessionOptions,
} from '../../src/configuration/redis-session.options.js';
import { resolveRedisDeadlineOptions } from '../../../deadlines/src/redis/redis-deadline.options.js';

function problemsOf(options: object, resolve: (options: object) => unknown = resolveRedisSessionOptions) {
  try {
    resolve(options);
  } catch (error) {
    if (error instanceof InvalidSessionOptionsError) return error.problems;
    throw error;
  }
  return [];
}

const EACH = [
  { url: 'redis://localhost:6380' },
  { namespace: 'shop:sessions' },
  { partitions: 8 },
  { grace: '1s' },
  { grace: '3h' },
  { cleanup: { batchSize: 10 } },
  { notifications: 'off' },
  { expirations: 'sorted-set' },
  { commandTimeout: '10ms' },
  { commandTimeout: '1d' },
  { replicas: 1 },
  { events: { concurrency: 1 } },
  { events: { lease: '1d', shutdownTimeout: '1d' } },
  { events: { shutdownTimeout: '0s' } },
  { events: { retention: '5h', maxLength: 1 } },
  { events: { deadLetters: { retention: '1m' } } },
  { encryption: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] } },
  { requireAtStart: true },
] as const satisfies RedisSessionModuleOptions[];

/** What the options say, and nothing that follows from others. */
function says(given: RedisSessionModuleOptions): object {
  const { encryption: _, connection, events, cron, batchSize, ...others } = resolveRedisSessionOptions(given);
  const resolved = { ...others, url: connection, cleanup: { cron, batchSize }, encryption: 'secret' };
  const named = Object.keys(given).map((name) => [name, resolved[name as keyof typeof resolved]]);
  const own = Object.keys(given.events ?? {}).map((name) => [name, events[name as keyof typeof events]]);
  return { ...Object.fromEntries(named), ...(given.events && { events: Object.fromEntries(own) }) };
}

it('each two options can be given together, and change what neither of them says', () => {
  for (const one of EACH) {
    for (const other of EACH) {
      if (Object.keys(one)[0] === Object.keys(other)[0]) continue;
      expect(says({ ...one, ...other })).toEqual({ ...says(one), ...says(other) });
    }
  }
});

it.each(['shop:index', 'shop:revoked', 'shop:due:2'])(
  'the keys of namespace %s would pass for those of another',
  (namespace) => {
    expect(problemsOf({ namespace })).toEqual([expect.stringContaining('`namespace` must not contain :index')]);
  },
);

it.each(['index', 'shop:indexes', 'shop:overdue'])('namespace %s has no keys of another', (namespace) => {
  expect(problemsOf({ namespace })).toEqual([]);
});

it.each(['1m', '59m', '1h', '61m', '10d'])('with a grace of %s, events are kept as long by default', (grace) => {
  const { grace: milliseconds, events } = resolveRedisSessionOptions({ grace });
  expect(events.retention).toBe(Math.max(milliseconds, 3_600_000));
});

it('no option makes a timer that Node.js would fire at once', () => {
  for (const wait of ['25d', '86401s']) {
    for (const options of [
      { commandTimeout: wait },
      { events: { lease: wait } },
      { events: { shutdownTimeout: wait } },
    ]) {
      expect(problemsOf(options)).toEqual([expect.stringMatching(/ is \d+[ds]: it must be at most 1d\.$/)]);
    }
  }
});

it('a bound is told in the unit in which one would write it', () => {
  expect(problemsOf({ commandTimeout: '1ms' })).toEqual(['Option `commandTimeout` is 1ms: it must be at least 10ms.']);
});

it('a retention that is too short, or none, is one problem, in words of what can be set', () => {
  expect(problemsOf({ events: { retention: '1m' } })).toEqual([
    'Option `events.retention` must be at least as long as `grace`.',
  ]);
  expect(problemsOf({ events: { retention: 'soon' } })).toEqual([
    expect.stringMatching(/^Option `events.retention` is not a duration/),
  ]);
  // The command does not have an option `grace`.
  for (const retention of ['0', '5ms', '999ms'])
    expect(problemsOf(endingOptions({ values: { retention } }))).toEqual([
      `Option \`events.retention\` is ${retention}: it must be at least 1s.`,
    ]);
  // Neither does the module of deadlines.
  expect(problemsOf({ events: { retention: '59s' } }, resolveRedisDeadlineOptions)).toEqual([
    'Option `events.retention` must be at least as long as 1m.',
  ]);
});
