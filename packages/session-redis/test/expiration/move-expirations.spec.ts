import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { moveExpirations } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const COMMAND = fileURLToPath(new URL('../../bin/nest-session-redis.mjs', import.meta.url));
const UNUSED = 'There is nothing to move: no application has started in namespace "nest:sesion" yet.';

let store: Store;
beforeAll(async () => {
  store = await Store.open();
});
beforeEach(async () => {
  await store.client.flushall();
  await store.client.hset(store.partitions.meta, 'version', '1', 'partitions', '1');
});
afterAll(() => store.close());

/** `nest-session-redis` in a process of its own. */
async function command(...args: string[]) {
  const child = spawn(process.execPath, [COMMAND, ...args], {
    env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: store.server.url },
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
}

it('the command moves the ends of sessions from the buckets to the sorted set, and back', async () => {
  const id = await store.create();
  expect(await command('expirations', '--to', 'sorted-set')).toEqual({
    code: 0,
    stdout: '1 sessions moved, 0 had ended\n',
    stderr: '',
  });
  expect([await store.buckets(id), await store.client.zcard(store.keys.ends)]).toEqual([[], 1]);
  expect(await moveExpirations({ url: store.server.url, expirations: 'buckets' })).toEqual({
    moved: 1,
    ended: 0,
    left: 0,
  });
  expect(await store.client.exists(store.keys.ends)).toBe(0);
});

it('without `expirations` it is refused, and moves nothing', async () => {
  await store.create();
  await expect(moveExpirations({ url: store.server.url })).rejects.toMatchObject({
    problems: ['Option `expirations` is missing: where to move the ends of the sessions, "buckets" or "sorted-set".'],
  });
});

it('a namespace that no application has used is refused, and gets no key', async () => {
  const namespace = 'nest:sesion';
  await expect(moveExpirations({ url: store.server.url, namespace, expirations: 'sorted-set' })).rejects.toMatchObject({
    problems: [UNUSED],
  });
  const { code, stderr } = await command('expirations', '--to', 'sorted-set', '--namespace', namespace);
  expect([code, stderr.includes(UNUSED)]).toEqual([1, true]);
  expect(await store.client.keys('nest:sesion*')).toEqual([]);
});
