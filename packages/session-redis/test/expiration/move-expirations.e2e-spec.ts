import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { moveExpirations } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const COMMAND = fileURLToPath(new URL('../../bin/nest-session-redis.mjs', import.meta.url));
const UNUSED = 'No application has started in namespace "nest:sesion" yet.';

let store: Store;
beforeAll(async () => {
  store = await Store.open();
});
beforeEach(async () => {
  await store.client.flushall();
  await store.client.hset(store.partitions.meta, 'version', '3', 'partitions', '1');
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

/** Refused with these lines and the usage of the command. */
function refused(name: string, problems: readonly string[]) {
  const begin = `^${problems.join('\n')}\n\nUsage: nest-session-redis ${name} `;
  return { code: 1, stdout: '', stderr: expect.stringMatching(new RegExp(begin)) };
}

it('the command moves the ends of sessions from the buckets to the sorted set, and back', async () => {
  const id = await store.create();
  expect(await command('expirations', '--to', 'sorted-set')).toEqual({
    code: 0,
    stdout: '1 session moved, 0 had ended\n',
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

it.each([
  ['expirations', ['expirations needs the option --to.']],
  ['expirations --to=', ['expirations needs the option --to.']],
  ['expirations --from buckets --to sorted-set', ['expirations has no option --from.']],
  ['expirations --from buckets', ['expirations needs the option --to.', 'expirations has no option --from.']],
  ['repartition --to 4', ['repartition needs the option --from.']],
  ['repartition --from 1 --to 4 --retention 1h', ['repartition has no option --retention.']],
])('`%s` prints the usage with what is wrong, and moves nothing', async (line, problems) => {
  const id = await store.create();
  expect(await command(...line.split(' '))).toEqual(refused(line.split(' ')[0]!, problems));
  expect(await store.buckets(id)).toHaveLength(1);
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

it('an empty namespace is refused, and not taken for the default', async () => {
  await store.create();
  const { code, stderr } = await command('expirations', '--to', 'sorted-set', '--namespace', '');
  expect([code, stderr]).toEqual([1, expect.stringContaining('--namespace must not be empty.')]);
});
