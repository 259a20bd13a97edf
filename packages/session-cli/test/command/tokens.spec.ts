import { SessionIds } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { toldByCommand } from '../support/called.command.js';
import { HandlingGroup } from '../../../session-redis/test/support/handled-events.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

describe.each([1, 4])('where session ids are tokens, partitions: %i', (partitions) => {
  let store: Store;
  let ids: Record<'live' | 'rotated' | 'before' | 'ended' | 'broken' | 'stray', string>;
  beforeAll(async () => {
    store = await Store.open({ partitions });
    const { client } = store;
    await client.hset(store.partitions.meta, { version: '3', partitions, holds: 'sessions', ids: 'plain' });
    const before = await store.create({}, { principal: 'ann' });
    const rotated = store.id(before);
    const others = await Promise.all(Array.from({ length: 4 }, () => store.create()));
    const [live, ended, broken, stray] = others as [string, string, string, string];
    ids = { live, ended, broken, before, rotated, stray };
    const group = await HandlingGroup.create(store);
    await store.save(before, { newId: rotated });
    await store.scripts.delete(ended);
    await group.record(store.keysOf(rotated), { type: 'id-changed', session: rotated, previous: before }, 'dead');
    await group.record(store.keysOf(ended), { type: 'deleted', session: ended }, 'dead');
    // Its member in a bucket becomes a dead letter.
    await store.runOut(stray);
    await client.del(store.keysOf(stray).session(stray));
    await client.set(store.keysOf(stray).session(stray), 'planted');
    const [minute] = await store.buckets(stray);
    await store.scripts.claimExpired(store.keysOf(stray), [`expires:${stray}`], minute);
    await client.del(store.keysOf(stray).session(stray));
    await client.hdel(store.keysOf(broken).session(broken), 'maxInactiveInterval');
    await client.set(store.keysOf(stray).shadow(stray), '');
  });
  afterAll(() => store.close());

  it.each([
    { command: 'dead-letters', shows: ['rotated', 'before', 'ended', 'stray'] },
    { command: 'verify', shows: ['broken', 'stray'] },
    { command: 'list --user ann', shows: [] },
    { command: 'groups', shows: [] },
    { command: 'stats', shows: [] },
    { command: 'doctor', shows: [] },
    { command: 'show <live>', shows: ['live'] },
    { command: 'show <before>', shows: ['before', 'rotated'] },
    { command: 'show <ended>', shows: ['ended'] },
    { command: 'end <ended>', shows: ['ended'] },
    { command: 'end <live>', shows: ['live'] },
    { command: 'verify --repair', shows: ['broken', 'stray'] },
  ] as const)('`$command` tells their fingerprints alone', async ({ command, shows }) => {
    const words = command.replace(/<(\w+)>/, (_, which: keyof typeof ids) => ids[which]).split(' ');
    const told = await toldByCommand([...words, '--url', store.server.url]);
    for (const id of Object.values(ids)) expect(told).not.toContain(id.slice(1, 20));
    const names = new SessionIds(undefined, 'plain');
    for (const which of shows) expect(told).toContain(names.shown(ids[which]));
  });
});
