import { readFile } from 'node:fs/promises';
import { COMMANDS } from '../../src/command/commands.js';
import { runCommand as run } from '../support/command.process.js';

const NAMES = COMMANDS.map(({ name }) => name).join(', ');

it.each(['find --principal ada', 'find', '--namespace shop find', 'find --help'])(
  'nest-session answers an unknown command with the ones that exist, whatever its options: %s',
  async (line) => {
    const stderr = `Unknown command "find". The commands are ${NAMES}. See nest-session --help\n`;
    expect(await run(line)).toEqual({ code: 1, stdout: '', stderr });
  },
);

it.each([
  ['', 'Usage: nest-session'],
  ['repartition 1 --to 4', 'Unexpected argument (1 character, not shown'],
  ['repartition --principal ada', "Unknown option '--principal'. See nest-session --help\n"],
  ['-x', "Unknown option '-x'. If it begins an argument, write -- before the argument. See nest-session --help\n"],
  ['erase --user ada --yes --user eve', '--user was given more than once. See nest-session --help\n'],
  ['end --user=', '--user must not be empty.\n'],
  ['repartition --to', "Option '--to <value>' argument missing. See nest-session --help\n"],
  [
    'repartition --from --to 4',
    "Option '--from' argument is ambiguous. If its value begins with a hyphen, write --from=-value. See nest-session --help\n",
  ],
  ['repartition --from x --to 4', '--from must be a whole number, but is "x". See nest-session --help\n'],
  ['repartition --from 1 --to 4 --url redis://localhost/shop', '--url must end with the number'],
  ['repartition --from 1 --to 4 --url redis://:100%@localhost', '--url cannot be read: '],
  ['repartition --from 1 --to 4 --namespace {shop}', '--namespace must'],
  ['repartition --from 1 --to 4.5', '--to must be a whole number, but is "4.5". See nest-session --help\n'],
])('nest-session fails with what is wrong: %s', async (line, message) => {
  const { code, stdout, stderr } = await run(line);
  expect({ code, stdout, stderr: stderr.slice(0, message.length) }).toEqual({ code: 1, stdout: '', stderr: message });
});

it.each(['repartition --from 1 --to 4', 'doctor', 'list --user ann', 'groups', 'watch'])(
  'nest-session ends with what to do when Redis cannot be reached: %s',
  async (line) => {
    const { code, stderr } = await run(`${line} --url redis://ada:secret@127.0.0.1:1`);
    const reason = 'Error: "connect ECONNREFUSED 127.0.0.1:1"';
    const last = `Redis (127.0.0.1:1) cannot be reached: ${reason}. Start it, or correct its address`;
    expect({ code, last: stderr.trimEnd().split('\n').at(-1) }).toEqual({ code: 1, last });
  },
);

it('nest-session names REDIS_URL when that is wrong', async () => {
  const { code, stderr } = await run('repartition --from 1 --to 4', { REDIS_URL: 'localhost:6379' });
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'REDIS_URL must be a redis:// or rediss:// url.\n' });
});

it.each(['--help', '-h', 'help', 'help repartition', 'repartition -h'])(
  'nest-session %s prints the usage',
  async (line) => {
    expect(await run(line)).toEqual({ code: 0, stdout: expect.stringMatching(/^Usage: /) as string, stderr: '' });
  },
);

it.each(['--version', '-v'])('nest-session %s prints the version of the package', async (line) => {
  const { version } = JSON.parse(
    await readFile(new URL('../../../session-redis/package.json', import.meta.url), 'utf8'),
  );
  expect(await run(line)).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
});
