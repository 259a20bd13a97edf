import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Injectable } from '@nestjs/common';
import {
  IndexedSessionRepository,
  OnSessionEvent,
  SessionDeletedEvent,
  SessionEvent,
  SessionExpiredEvent,
  Sessions,
} from '@nest-session/core';
import { deadline, type DeadlineEvent, DeadlineModule, Deadlines, OnDeadline } from '@nest-session/deadlines';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import { DeadlinePartitions } from '../../../deadlines/src/redis/deadline-keys.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { verify } from '../../../session-cli/src/verification/verify.js';
import { jsonOf, runCommand } from '../../../session-cli/test/support/command.process.js';
import { documentedLines } from '../support/documented.rights.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { MINUTE } from '../support/store.fixture.js';

LeakGuard.install();

const payment = deadline<{ readonly total: number }>('payment');

@Injectable()
class Handlers {
  readonly heard: SessionEvent[] = [];
  readonly due: DeadlineEvent<typeof payment>[] = [];

  @OnSessionEvent(SessionEvent)
  hear(event: SessionEvent) {
    this.heard.push(event);
  }

  @OnDeadline(payment)
  pay(event: DeadlineEvent<typeof payment>) {
    this.due.push(event);
  }
}

describe.each([
  { file: 'dump.rdb', partitions: 1, args: [] },
  { file: 'appendonlydir', partitions: 4, args: ['--appendonly', 'yes', '--appendfsync', 'always'] },
])('a backup of $file that is restored, partitions: $partitions,', ({ file, partitions, args }) => {
  let folder: string;
  let server: SteppableRedisServer;
  let client: Redis;
  const running: EventInstance[] = [];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'restored-'));
    server = await SteppableRedisServer.start({ dir: folder, args });
    client = new Redis(server.url);
    client.on('error', () => undefined);
  });
  afterEach(async () => {
    await stopAll();
    client.disconnect();
    await server.stop();
    await rm(folder, { recursive: true });
  });

  async function start({ consume = true } = {}): Promise<EventInstance> {
    const redis = { url: server.url, partitions, events: { consume } };
    const instance = await EventInstance.start({
      redis: { ...redis, cleanup: { cron: '* * * * * *' } },
      imports: [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot(redis)],
      providers: consume ? [Handlers] : [],
    });
    running.push(instance);
    return instance;
  }

  const stopAll = () => Promise.all(running.splice(0).map((instance) => instance.stop()));
  const repositoryOf = ({ module }: EventInstance) => module.get(IndexedSessionRepository, { strict: false });
  const deadlinesOf = ({ module }: EventInstance) => module.get(Deadlines, { strict: false });
  const handlersOf = ({ module }: EventInstance) => module.get(Handlers, { strict: false });
  const idsOf = (events: readonly { readonly id: string }[]) => events.map(({ id }) => id).toSorted();

  async function signIn(instance: EventInstance, name: string, timeout = 1800): Promise<string> {
    const session = repositoryOf(instance).createSession();
    session.setAttribute('cart', `of ${name}`);
    session.signIn(name);
    session.maxInactiveInterval = timeout;
    await session.save();
    return session.id;
  }

  const isAlive = async (instance: EventInstance, id: string) => (await repositoryOf(instance).findById(id)) !== null;

  async function backUp(): Promise<void> {
    // Redis writes the other ones with each command.
    if (file === 'dump.rdb') await client.save();
    await cp(join(folder, file), join(folder, 'backup'), { recursive: true });
  }

  /** Without an instance. Returns the time by the clock of Redis, in epoch milliseconds. */
  async function restore(): Promise<number> {
    await stopAll();
    await server.kill();
    await rm(join(folder, file), { recursive: true });
    await cp(join(folder, 'backup'), join(folder, file), { recursive: true });
    await server.restart();
    const [seconds, microseconds] = await eventually(() => client.time());
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  }

  /** What happens before and after a backup, which is then restored. */
  async function restored() {
    const web = await start({ consume: false });
    const worker = await start();
    const [ann, bob] = [await signIn(web, 'ann'), await signIn(web, 'bob')];
    const [cat, dan] = [await signIn(web, 'cat', 8 * 60), await signIn(web, 'dan', 60)];
    await eventually(() => expect(handlersOf(worker).heard).toHaveLength(8));
    const deadlines = deadlinesOf(web);
    const many = ['handled', 'cancelled', 'moved'].map((key) => ({ key, in: '8m', data: { total: 30 } }) as const);
    await deadlines.scheduleMany(payment, many);
    await worker.stop();
    running.splice(running.indexOf(worker), 1);
    const eve = await signIn(web, 'eve');
    await backUp();

    const after = await start();
    const { heard, due } = handlersOf(after);
    await eventually(() => expect(idsOf(heard)).toEqual([`created-${eve}`, `signed-in-${eve}`].toSorted()));
    const session = (await repositoryOf(web).findById(bob))!;
    session.signOut();
    await session.save();
    expect(await deadlines.reschedule(payment, 'handled', { in: 0 })).toBe('moved');
    expect(await deadlines.cancel(payment, 'cancelled')).toBe('cancelled');
    expect(await deadlines.reschedule(payment, 'moved', { in: '1h' })).toBe('moved');
    await deadlines.schedule(payment, 'late', { in: '1h', data: { total: 30 } });
    const fay = await signIn(web, 'fay');
    await eventually(() => expect(heard).toHaveLength(5));
    await server.stepClock(10 * MINUTE);
    await eventually(() => {
      expect(idsOf(heard)).toEqual(expect.arrayContaining([`expired-${cat}`, `expired-${dan}`, `deleted-${bob}`]));
      expect(due.map(({ key }) => key)).toEqual(['handled']);
    });
    return { ann, bob, cat, dan, eve, fay, handled: due[0]!.id, at: await restore() };
  }

  /**
   * What `verify` finds in the sessions; `verify --repair` leaves nothing of it. Nothing is wrong with the deadlines.
   */
  async function findings(): Promise<string[]> {
    const options = resolveRedisSessionOptions({});
    const sessions = { client, partitions: new SessionPartitions('nest:session', partitions), options };
    const deadlines = { client, partitions: new DeadlinePartitions('nest:deadlines', partitions), options };
    const found = (await verify(sessions)).findings.map(({ rule }) => rule);
    expect((await verify(sessions, { repair: true })).left).toEqual([]);
    for (const store of [sessions, deadlines]) expect((await verify(store)).findings).toEqual([]);
    return found;
  }

  /** With the rights that docs/securing-redis.md names, and no others. */
  async function asApplication(): Promise<{ REDIS_URL: string }> {
    const rights = ['every process', 'handlers', 'groups'] as const;
    const lines = documentedLines(partitions > 1 ? [...rights, 'partitions'] : rights);
    for (const line of lines) await client.acl('SETUSER', 'app', ...line);
    await client.acl('LOG', 'RESET');
    return { REDIS_URL: `redis://app:a-long-secret@127.0.0.1:${server.port}` };
  }

  it('brings back who signed out, deadlines that were cancelled, moved or handled, and events that were handled', async () => {
    const { ann, bob, cat, dan, eve, fay, handled } = await restored();
    const instance = await start();
    const { heard, due } = handlersOf(instance);
    expect([await isAlive(instance, ann), await isAlive(instance, eve)]).toEqual([true, true]);
    // He signed out.
    expect(await isAlive(instance, bob)).toBe(true);
    // The backup knows neither her nor that.
    expect(await isAlive(instance, fay)).toBe(false);
    expect(await deadlinesOf(instance).get(payment, 'late')).toBeUndefined();
    await eventually(() => {
      expect(due).toHaveLength(3);
      expect(heard).toHaveLength(4);
    });
    // They expired, and that comes again. Of the one that ended before the grace period, nothing else is left.
    expect(idsOf(heard)).toEqual([`created-${eve}`, `signed-in-${eve}`, `expired-${cat}`, `expired-${dan}`].toSorted());
    const ends = heard.filter((event) => event instanceof SessionExpiredEvent);
    const told = ends.map(({ sessionId, dataLost, principalName }) => [sessionId, dataLost, principalName]);
    expect(told).toEqual(
      expect.arrayContaining([
        [cat, false, 'cat'],
        [dan, true, undefined],
      ]),
    );
    expect(new Set(due.map(({ key, data }) => `${key} ${data.total}`))).toEqual(
      new Set(['handled 30', 'cancelled 30', 'moved 30']),
    );
    expect(due.find(({ key }) => key === 'handled')!.id).toBe(handled);
    // The index had the one whose data are gone.
    expect(await findings()).toEqual(['index-entry-without-session']);
  });

  it('forgets an endEverySession() that came after it', async () => {
    const before = await start();
    const ann = await signIn(before, 'ann');
    await backUp();
    await before.module.get(Sessions, { strict: false }).endEverySession();
    expect(await isAlive(before, ann)).toBe(false);
    await restore();
    expect(await isAlive(await start(), ann)).toBe(true);
  });

  it('brings nobody back where the sessions are ended before instances start, and each end is reported once', async () => {
    const { ann, bob, cat, dan, eve } = await restored();
    const env = await asApplication();
    const { code, stdout, stderr } = await runCommand('end --begun-before now --yes', env);
    expect([code, stdout, stderr]).toEqual([
      0,
      expect.stringMatching(/^Every session .* is over\.\nRunning .*\n$/),
      '',
    ]);
    const denied = ((await client.acl('LOG')) as string[][]).map((entry) => entry[entry.indexOf('object') + 1]);
    expect(denied.filter((object) => object !== 'client|setinfo')).toEqual([]);
    // Of those that expired meanwhile. No instance has recorded that yet.
    expect(await findings()).toEqual(['end-overdue', 'index-entry-without-session']);
    const instance = await start();
    const { heard } = handlersOf(instance);
    const late = await signIn(instance, 'late');
    for (const id of [ann, bob, eve]) expect(await isAlive(instance, id)).toBe(false);
    const ended = [ann, bob, eve].map((id) => `deleted-${id}`);
    const expired = [cat, dan].map((id) => `expired-${id}`);
    const began = [eve, late].flatMap((id) => [`created-${id}`, `signed-in-${id}`]);
    await eventually(() => expect(idsOf(heard)).toEqual([...ended, ...expired, ...began].toSorted()));
    const ends = heard.filter((event) => event instanceof SessionDeletedEvent);
    const told = ends.map(
      ({ sessionId, reason, session }) => `${sessionId} ${reason} ${session.getAttribute<string>('cart')}`,
    );
    expect(told.toSorted()).toEqual(
      [`${ann} everybody of ann`, `${bob} everybody of bob`, `${eve} everybody of eve`].toSorted(),
    );
    expect(await isAlive(instance, late)).toBe(true);
    expect(await findings()).toEqual([]);
  });

  it('ends by the time of the restore what it has, and nobody who has signed in since', async () => {
    const { ann, bob, eve, at } = await restored();
    const [one, other] = [await start(), await start()];
    const late = await signIn(one, 'late');
    const session = (await repositoryOf(other).findById(eve))!;
    session.signIn('eve');
    await session.save();
    const { code, json } = await jsonOf(
      `end --begun-before ${new Date(at).toISOString()} --yes`,
      await asApplication(),
    );
    expect([code, json]).toEqual([0, { begunBefore: at, recordedBy: 'instances' }]);
    const isOver = async (id: string) => !(await isAlive(one, id)) && !(await isAlive(other, id));
    for (const id of [ann, bob]) await eventually(() => isOver(id), { timeout: 2000 });
    const ends = () =>
      [one, other].flatMap((each) => handlersOf(each).heard).filter((event) => event.type === 'deleted');
    await eventually(() => expect(idsOf(ends())).toEqual([`deleted-${ann}`, `deleted-${bob}`].toSorted()));
    expect(new Set(ends().map((event) => event.session.getAttribute('cart')))).toEqual(new Set(['of ann', 'of bob']));
    for (const id of [late, session.id]) expect(await isAlive(one, id)).toBe(true);
    expect(await findings()).toEqual(['index-entry-without-session']);
  });
});
