import { spawnSync } from 'node:child_process';
import { COMMAND, jsonOf, runCommand } from '../support/command.process.js';

const EVICTION = {
  line: 'Redis may evict ...',
  level: 'warn',
  means: expect.stringContaining('`maxmemory-policy` is not `noeviction`'),
  do: 'Set it to `noeviction`.',
};
const MESSAGE = 'Redis may evict sessions, which then end without an event: its maxmemory-policy is allkeys-lru';

const explained = async (...lines: string[]) => (await jsonOf<object>(['explain', lines.join('\n')])).json;

it('nest-session explain says what a line means and what to do, without a Redis', async () => {
  expect(await runCommand(['explain', MESSAGE])).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^warn {4}Redis may evict \.\.\.\n {8}`maxmemory-policy` .*\n {8}Set it to .*\n$/),
    stderr: '',
  });
});

it('nest-session explain names the page that says more', async () => {
  const { stdout } = await runCommand(['explain', 'Event "a" is a dead letter now, see nest:session:events:dead']);
  expect(stdout).toContain('See the page "Handling session events" of the documentation.\n');
});

it.each([
  ['the console of Nest', `[Nest] 1  - 11/30/2026, 8:52:46 AM    WARN [RedisSession] ${MESSAGE} +12ms`],
  [
    'colours',
    `\u001b[33m[Nest] 1\u001b[39m \u001b[33m WARN\u001b[39m \u001b[38;5;3m[RedisSession] \u001b[39m${MESSAGE}`,
  ],
  ['a JSON logger', JSON.stringify({ level: 40, context: 'RedisSession', msg: MESSAGE })],
  ['another logger', `2026-11-30T08:52:46Z warn: ${MESSAGE}`],
])('nest-session explain finds a line as it is written by %s', async (_, line) => {
  expect(await explained(line)).toEqual({ lines: [EVICTION], unknown: 0 });
});

it('nest-session explain takes the line that says most where several are about a message', async () => {
  const lines = [expect.objectContaining({ line: 'nest-session ... keeps sessions in ...' })];
  expect(await explained('nest-session 0.1.0 keeps sessions in redis.internal:6379')).toEqual({ lines, unknown: 0 });
});

it('nest-session explain takes what a client may have put into a line, such as a URL', async () => {
  const lines = [expect.objectContaining({ line: 'A WebSocket from a page of another origin was refused: ...' })];
  expect(await explained('A WebSocket from a page of another origin was refused: "https://ada@evil.example"')).toEqual({
    lines,
    unknown: 0,
  });
});

it('nest-session explain reads a log from standard input, and explains each kind of line once', () => {
  const input = `${MESSAGE}\nGET /cart 200\n${MESSAGE}\nRedis can be reached again\n`;
  const { status, stdout, stderr } = spawnSync(process.execPath, [COMMAND, 'explain'], { input, encoding: 'utf8' });
  expect({ status, levels: stdout.match(/^\w+(?= )/gm), stderr }).toEqual({
    status: 0,
    levels: ['warn', 'log'],
    stderr: '1 other line of the text: not explained.\n',
  });
});

it('nest-session explain says of an unknown line where to report it', async () => {
  expect(await runCommand(['explain', 'GET /cart 200'])).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^This version does not know the line\. .* report it as an issue of nest-session/),
  });
});

it('nest-session explain without a line says that it needs one', async () => {
  expect(await runCommand('explain')).toEqual({ code: 1, stdout: '', stderr: 'explain needs a log line.\n' });
});
