import { setTimeout as pause } from 'node:timers/promises';
import { PRINCIPAL_NAME_INDEX_NAME, type Session } from '@nest-session/core';
import { SessionIndexes } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisCluster } from '@nest-session/testing';
import slotOf from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import {
  closeConnections,
  createConnections,
  type RedisConnections,
} from '../../../redis-events/src/connection/redis-connections.js';
import { RequestConnection } from '../../../redis-events/src/connection/request.connection.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { RedisSessionRepository } from '../../src/repository/redis-session.repository.js';
import { scriptsOn } from '../../../redis-events/src/scripts/define-scripts.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { hashOfValue } from '../support/hash-of-value.js';
import { KEEPING_RULES, MINUTE } from '../support/store.fixture.js';

LeakGuard.install();

interface User {
  readonly tenant: string;
  readonly name: string;
}

const partitions = new SessionPartitions('nest:session', 64);
const indexes = new SessionIndexes({ tenant: (session) => session.getAttribute<User>('user')?.tenant });

let cluster: RedisCluster;
let connections: RedisConnections;
let repository: RedisSessionRepository;
beforeAll(async () => {
  cluster = await RedisCluster.start();
  const options = resolveRedisSessionOptions({ cluster: { nodes: cluster.addresses }, commandTimeout: '30s' });
  connections = createConnections(options);
  await connections.background.connect();
  await connections.request.connect();
  const connection = new RequestConnection(connections.request, options);
  const scripts = scriptsOn((client) => new SessionScripts(client, partitions, KEEPING_RULES));
  repository = new RedisSessionRepository(connection, scripts, partitions, { indexes });
}, MINUTE);
afterAll(async () => {
  await closeConnections(connections);
  await cluster.stop();
});

/** Begins something while the slot of a session moves, and only these of its keys have moved. */
async function duringMigration<T>(id: string, begin: () => Promise<T>, moved: readonly string[] = []): Promise<T> {
  const slot = slotOf(partitions.of(id).prefix);
  const from = await cluster.primaryOf(slot);
  const to = cluster.nodes.find((node) => node !== from)!;
  const [source, target] = [new Redis(from.url), new Redis(to.url)];
  try {
    await target.cluster('SETSLOT', slot, 'IMPORTING', (await source.cluster('MYID')) as string);
    await source.cluster('SETSLOT', slot, 'MIGRATING', (await target.cluster('MYID')) as string);
    for (const key of moved) await source.migrate('127.0.0.1', to.port, key, 0, MINUTE);
    const begun = begin();
    // Redis has replied to it, or it is told to wait.
    await Promise.race([begun, pause(100)]);
    await cluster.moveSlots([slot], to);
    return await begun;
  } finally {
    source.disconnect();
    target.disconnect();
  }
}

const bucketOf = async (id: string) =>
  (await connections.background.hget(partitions.of(id).session(id), 'bucket')) ?? '';

async function signedIn(): Promise<Session> {
  const session = repository.createSession();
  session.principalName = 'ann';
  session.setAttribute('user', { tenant: 'north', name: 'Ann' });
  await session.save();
  return session;
}

it('the only session of a user stays in its indexes when an attribute of one changes while its slot moves', async () => {
  const session = await signedIn();
  session.setAttribute('user', { tenant: 'north', name: 'Anna' });
  expect(await duringMigration(session.id, () => session.save())).toBe('saved');
  for (const [name, value] of [
    [PRINCIPAL_NAME_INDEX_NAME, 'ann'],
    ['tenant', 'north'],
  ] as const) {
    const [found, ...others] = await repository.findByIndex(name, value);
    expect([found?.getAttribute('user'), others]).toEqual([{ tenant: 'north', name: 'Anna' }, []]);
  }
  await repository.deleteById(session.id);
});

it('a save waits until the slot has moved, where a key that its script derives has moved', async () => {
  const session = await signedIn();
  session.setAttribute('cart', ['apple']);
  const bucket = partitions.of(session.id).bucket(await bucketOf(session.id));
  expect(await duringMigration(session.id, () => session.save(), [bucket])).toBe('saved');
  expect((await repository.findById(session.id))?.getAttribute('cart')).toEqual(['apple']);
  await repository.deleteById(session.id);
});

it('a sign-out waits until the slot has moved, where the index of the user has moved', async () => {
  const session = await signedIn();
  const index = partitions.of(session.id).index(PRINCIPAL_NAME_INDEX_NAME, hashOfValue('ann'));
  expect(await duringMigration(session.id, () => repository.deleteById(session.id), [index])).toBe(true);
  expect(await repository.findByPrincipalName('ann')).toEqual([]);
});
