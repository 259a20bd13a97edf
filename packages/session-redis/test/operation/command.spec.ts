import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const COMMAND = fileURLToPath(new URL('../../bin/nest-session-redis.mjs', import.meta.url));

/** `nest-session-redis` in a process of its own, with a Redis that nothing reaches. */
async function run(line: string) {
  const child = spawn(process.execPath, [COMMAND, ...line.split(' ').filter(Boolean)], {
    env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: 'redis://nowhere.invalid' },
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
}

it.each(['find --principal ada', 'find', '--namespace shop find', 'find --help'])(
  'nest-session-redis answers an unknown command with the ones that exist, whatever its options: %s',
  async (line) => {
    const stderr = 'Unknown command "find". The commands are expirations, repartition. See nest-session-redis --help\n';
    expect(await run(line)).toEqual({ code: 1, stdout: '', stderr });
  },
);

it.each([
  ['', 'Usage: nest-session-redis'],
  ['expirations buckets --to sorted-set', 'Unexpected argument "buckets".\n\nUsage: nest-session-redis'],
  ['expirations --principal ada', "Unknown option '--principal'"],
])('nest-session-redis fails with what is wrong: %s', async (line, message) => {
  const { code, stdout, stderr } = await run(line);
  expect({ code, stdout, stderr: stderr.slice(0, message.length) }).toEqual({ code: 1, stdout: '', stderr: message });
});

it('nest-session-redis --help prints the usage', async () => {
  expect(await run('--help')).toEqual({ code: 0, stdout: expect.stringMatching(/^Usage: /) as string, stderr: '' });
});
