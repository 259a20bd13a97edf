import { fileURLToPath } from 'node:url';
import type { DynamicModule, INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  deadline,
  type DeadlineEvent,
  DeadlineEvents,
  DeadlineModule,
  Deadlines,
  OnDeadline,
} from '@nest-session/deadlines';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { eventually } from '@nest-session/testing';
import fc from 'fast-check';
import { assertOrder, type HeardDeadline } from './deadline-history.js';
import { play, type Operation, type PlayedOperation } from './deadline-player.mjs';
import { PATIENCE } from '../../../session-redis/test/support/patience.js';
import { WorkerProcess } from '../../../session-redis/test/support/worker.process.js';

export const race = deadline<string>('race');

/** An instance whose clients race: an application here, or in a process of its own. */
export interface Racer {
  play(clients: readonly (readonly Operation[])[]): Promise<PlayedOperation[][]>;
  /** What its handler has heard so far. */
  heard(): readonly HeardDeadline[];
  stop(): Promise<void>;
}

export interface RaceOptions {
  readonly url: string;
  readonly partitions: number;
  /** @default true */
  readonly isHandling?: boolean;
}

class RaceModule {}

/** An application without faults: no process may stall for longer than the lease. */
export async function startRacer({
  url,
  partitions,
  isHandling = true,
}: RaceOptions): Promise<Racer & { app: INestApplicationContext }> {
  const heard: HeardDeadline[] = [];
  class Handler {
    @OnDeadline(race)
    handle({ id, key, data, dueAt, at }: DeadlineEvent<typeof race>) {
      heard.push({ id, key, data, dueAt, at });
    }
  }
  const store = RedisDeadlineModule.forRoot({ url, partitions, commandTimeout: PATIENCE, events: { lease: '1h' } });
  const module: DynamicModule = {
    module: RaceModule,
    imports: [DeadlineModule.forRoot(), store],
    providers: isHandling ? [Handler] : [],
  };
  const app = await NestFactory.createApplicationContext(module, { logger: ['error', 'warn'] });
  const deadlines = app.get(Deadlines);
  return {
    app,
    play: (clients) => play(deadlines, race, clients),
    heard: () => heard,
    stop: () => app.close(),
  };
}

export const PROGRAM = fileURLToPath(new URL('deadline.worker.mjs', import.meta.url));

/** The same in a process of its own. */
export async function startProcess({ url, partitions }: RaceOptions): Promise<Racer> {
  const environment = { REDIS_URL: url, PARTITIONS: String(partitions) };
  const worker = await WorkerProcess.start(environment, { program: PROGRAM });
  const said = (word: string) => worker.lines.filter((line) => line.startsWith(`${word} `));
  const valueOf = (line: string): unknown => JSON.parse(line.slice(line.indexOf(' ')));
  return {
    play: async (clients) => {
      const before = said('played').length;
      worker.tell(JSON.stringify(clients));
      await eventually(() => said('played').length > before, { timeout: 120_000, interval: 200 });
      return valueOf(said('played').at(-1)!) as PlayedOperation[][];
    },
    heard: () => said('heard').map(valueOf) as HeardDeadline[],
    stop: () => worker.end('SIGTERM'),
  };
}

/** A time that comes during the race, or one that does not. */
const wait = fc.oneof({ weight: 15, arbitrary: fc.nat({ max: 8 }) }, { weight: 1, arbitrary: fc.constant(3_600_000) });

function operation(keys: readonly string[]): fc.Arbitrary<Omit<Operation, 'token'>> {
  return fc.record({
    call: fc.constantFrom('schedule', 'schedule', 'schedule', 'reschedule', 'cancel', 'get'),
    key: fc.constantFrom(...keys),
    rest: fc.oneof(fc.constant(0), fc.nat({ max: 40 })),
    ifExists: fc.constantFrom('replace', 'keep', 'earlier', 'later'),
    wait,
    isInstant: fc.boolean(),
  });
}

export interface RaceSize {
  readonly racers: number;
  readonly keys: number;
  readonly clientsOfEach: number;
  readonly operationsOfEach: number;
}

/**
 * So many plans of what the clients of each racer do. A counterexample would not fail again: no other run has its
 * timing.
 */
export function plannedRaces(
  count: number,
  { racers, keys, clientsOfEach, operationsOfEach }: RaceSize,
): Operation[][][][] {
  const names = Array.from({ length: keys }, (_, i) => `key${i}`);
  const many = <T>(arbitrary: fc.Arbitrary<T>, length: number) =>
    fc.array(arbitrary, { minLength: length, maxLength: length, size: 'max' });
  const plans = many(many(many(operation(names), operationsOfEach), clientsOfEach), racers);
  return fc
    .sample(plans, count)
    .map((all) =>
      all.map((clients, r) =>
        clients.map((operations, c) => operations.map((each, i) => ({ ...each, token: `${r}.${c}.${i}` }))),
      ),
    );
}

let runs = 0;

/**
 * Lets the racers race, under keys that nobody has used before, and checks that all answers agree with what was heard.
 */
export async function checkRace(racers: readonly Racer[], plans: Operation[][][], app: INestApplicationContext) {
  const run = `${(runs += 1)}:`;
  const own = plans.map((clients) =>
    clients.map((all) => all.map((each) => ({ ...each, key: run + each.key, token: run + each.token }))),
  );
  const played = (await Promise.all(racers.map((racer, i) => racer.play(own[i]!)))).flat();
  await untilQuiet(app);
  const keys = [...new Set(own.flat(2).map(({ key }) => key))];
  const ends = await endsOf(app, keys);
  const heard = racers.flatMap((racer) => racer.heard()).filter(({ key }) => key.startsWith(run));
  expect(new Set(heard.map(({ id }) => id)).size).toBe(heard.length);
  expect(new Set(heard.map(({ data }) => data)).size).toBe(heard.length);
  expect(heard.filter(({ at, dueAt }) => at < dueAt)).toEqual([]);
  for (const key of keys) {
    const of = <T extends { key: string }>(all: readonly T[]) => all.filter((each) => each.key === key);
    assertOrder({ clients: [...played.map(of), of(ends)], heard: of(heard) });
  }
  return { operations: played.flat().length, heard: heard.length, answers: countsOf(played.flat()) };
}

/** Resolves when all that comes during the race has come and been handled. */
async function untilQuiet(app: INestApplicationContext): Promise<void> {
  await eventually(
    async () => {
      const before = Date.now() + 60_000;
      expect(await app.get(Deadlines).list(race, { before, limit: 1 })).toEqual([]);
      const [group] = await app.get(DeadlineEvents).list();
      expect(group).toMatchObject({ lag: 0, pending: 0, retrying: 0 });
    },
    { timeout: 60_000 },
  );
}

/** Asks what is left under each key, once nobody else acts. What is left is cancelled, for the next race. */
async function endsOf(app: INestApplicationContext, keys: readonly string[]): Promise<PlayedOperation[]> {
  const deadlines = app.get(Deadlines);
  const ends = keys.map((key): Operation => {
    const others = { rest: 0, token: '', ifExists: 'keep', wait: 0, isInstant: false } as const;
    return { call: 'get', key, ...others };
  });
  const [got] = await play(deadlines, race, [ends]);
  const left = got!.flatMap(({ answer }) => (typeof answer === 'string' ? [] : [answer]));
  expect(await deadlines.count(race)).toBe(left.length);
  const byTime = left.toSorted((one, other) => one.dueAt - other.dueAt);
  const listed = await deadlines.list(race, { limit: 1000 });
  expect(listed.map(({ dueAt }) => dueAt)).toEqual(byTime.map(({ dueAt }) => dueAt));
  expect(new Set(listed.map(({ id }) => id))).toEqual(new Set(left.map(({ id }) => id)));
  const [cancelled] = await play(deadlines, race, [ends.map((each) => ({ ...each, call: 'cancel' as const }))]);
  return [...got!, ...cancelled!];
}

function countsOf(played: readonly PlayedOperation[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { call, answer } of played) {
    const name = `${call} ${typeof answer === 'string' ? answer : 'found'}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
