import { TooManySessionsError } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { RequestConnection } from '../../../redis-events/src/connection/request.connection.js';
import { SingleNode } from '../../../redis-events/src/connection/redis-nodes.js';
import { LimitAcrossPartitions } from '../../src/limits/limit-across-partitions.js';
import { RedisSessionRepository } from '../../src/repository/redis-session.repository.js';
import { SessionEpochs } from '../../src/repository/session-epochs.js';
import { hashOfValue } from '../support/hash-of-value.js';
import { MINUTE, type SteppableStore, Store } from '../support/store.fixture.js';

LeakGuard.install();

const MOST = 3;
type Stored = Awaited<ReturnType<RedisSessionRepository['findById']>> & {};

/** What becomes of a session that is signed in; whether it counts from then on as the one that signed in last. */
const CHANGES = {
  'is read': { change: () => undefined, isSignIn: false },
  'has another attribute': { change: (session: Stored) => session.setAttribute('a', 2), isSignIn: false },
  'has another id': { change: (session: Stored) => session.changeSessionId(), isSignIn: false },
  'has another id and another attribute': {
    change: (session: Stored) => {
      session.changeSessionId();
      session.setAttribute('a', 2);
    },
    isSignIn: false,
  },
  'signs in anew': { change: (session: Stored) => session.signIn('ann'), isSignIn: true },
} as const;

describe.each([
  { partitions: 1, whenReached: 'end-oldest' },
  { partitions: 16, whenReached: 'end-oldest' },
  { partitions: 1, whenReached: 'refuse' },
  { partitions: 16, whenReached: 'refuse' },
] as const)('the limit of sessions, partitions: $partitions, $whenReached', ({ partitions, whenReached }) => {
  let store: SteppableStore;
  let repository: RedisSessionRepository;
  let running = 0;
  beforeEach(async () => {
    store = await Store.openSteppable({ partitions });
    const connection = new RequestConnection(new SingleNode(store.client), { commandTimeout: 10_000 });
    const write = connection.write.bind(connection);
    connection.write = (...args) => {
      running++;
      return write(...args).finally(() => running--);
    };
    const scripts = () => store.scripts;
    const ledger = new LimitAcrossPartitions(connection, scripts, store.partitions, { commandTimeout: 10_000 });
    const options = { maxSessions: { perPrincipal: MOST, whenReached } };
    const epochs = new SessionEpochs();
    const across = partitions > 1 ? ledger : undefined;
    repository = new RedisSessionRepository(connection, scripts, store.partitions, options, epochs, across);
  });
  afterEach(() => store.close());

  /** Saves, and waits until the place is settled, which no request waits for. */
  async function save(session: Pick<Stored, 'save'>): Promise<void> {
    await store.server.stepClock(1000);
    await session.save();
    await eventually(() => expect(running).toBe(0));
  }

  async function signIn(): Promise<string> {
    const session = repository.createSession();
    session.setAttribute('a', 1);
    await save(session);
    session.signIn('ann');
    await save(session);
    return session.id;
  }

  /** Of each place in the ledger, until when its session may be stored, and for whose session it is to end. */
  async function places(): Promise<Record<string, string[]>> {
    const hash = hashOfValue('ann');
    const ledger = await store.client.hgetall(store.partitions.of(hash).ledger(hash));
    return Object.fromEntries(Object.entries(ledger).map(([id, place]) => [id, place.split(' ').slice(1, 3)]));
  }

  const isLive = (id: string) => store.isAlive(id);

  it.each(Object.entries(CHANGES))('ends nothing, and keeps the order, when a session %s', async (_, each) => {
    const { change, isSignIn } = each;
    for (const which of [0, 1, 2]) {
      await store.client.flushall();
      const ids: string[] = [];
      while (ids.length < MOST) ids.push(await signIn());
      const session = (await repository.findById(ids[which]!))!;
      change(session);
      await save(session);
      // The forwarding mark, which led from the old id to the new one, is gone.
      await store.server.stepClock(2 * MINUTE);
      const [left] = ids.splice(which, 1, session.id);
      expect(await isLive(left!)).toBe(left === session.id);
      expect(await Promise.all(ids.map(isLive))).toEqual([true, true, true]);
      if (partitions > 1) expect(await places()).toEqual(Object.fromEntries(ids.map((id) => [id, ['0', '-']])));
      const order = isSignIn ? [...ids.toSpliced(which, 1), session.id] : ids;
      if (whenReached === 'refuse') await expect(signIn()).rejects.toThrow(TooManySessionsError);
      for (const ending of whenReached === 'refuse' ? [] : order) {
        const behind = order.slice(order.indexOf(ending));
        expect(await Promise.all(behind.map(isLive))).toEqual(behind.map(() => true));
        await signIn();
        expect(await isLive(ending)).toBe(false);
      }
    }
  });
});
