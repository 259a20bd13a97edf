import fc from 'fast-check';
import { givenAddress } from '../../src/command/address-flags.js';
import { readCommandLine } from '../../src/command/command-line.js';
import { COMMANDS } from '../../src/command/commands.js';
import { UsageError } from '../../src/command/usage.error.js';
import { codePoint } from '../../../session-redis/test/support/code-point.js';

const read = (line: string) => readCommandLine(line.split(' '), COMMANDS);

it('options may stand before and behind the argument', () => {
  const expected = { argument: 'abc', given: { url: 'redis://a', json: true } };
  for (const line of [
    'show abc --url redis://a --json',
    '--json show --url=redis://a abc',
    'show --json --url redis://a -- abc',
  ]) {
    const { command, argument, given } = read(line);
    expect([command!.name, argument, { ...given }]).toEqual(['show', expected.argument, expected.given]);
  }
});

it('a session id is an argument also where it begins like an option', () => {
  for (const id of [`-${'a'.repeat(42)}`, `-${'a'.repeat(31)}`, `--${'a'.repeat(41)}`, `-u${'-'.repeat(41)}`]) {
    expect(read(`end ${id} --json`)).toMatchObject({ argument: id, given: { json: true } });
  }
});

it('says how to write a value that begins with a hyphen', () => {
  expect(() => read('erase --user -bob')).toThrow(
    "Option '--user' argument is ambiguous. If its value begins with a hyphen, write --user=-value.",
  );
  expect(() => read('show -abc')).toThrow(
    "Unknown option '-a'. If it begins an argument, write -- before the argument.",
  );
  expect(read('show -- -abc').argument).toBe('-abc');
  expect(read('erase --user=-bob').given).toMatchObject({ user: '-bob' });
});

it.each([
  'stats redis://user:S3CRETPASS@host/',
  'stats S3CRETPASS',
  'redis://user:S3CRETPASS@host/ stats',
  'help redis://user:S3CRETPASS@host/',
  'show redis://user:S3CRETPASS@host/',
  'end REDISS://:S3CRETPASS@host',
  'show abc redis://user:S3CRETPASS@host/',
  'stats --redis://user:S3CRETPASS@host/',
  'stats --redis://user:S3CRETPASS@host/=1',
  'stats --namespace redis://user:S3CRETPASS@host/',
  'groups --remove redis://user:S3CRETPASS@host/',
  'repartition --from https://user:S3CRETPASS@host/ --to 4',
  'stats --json=redis://user:S3CRETPASS@host/',
])('`%s` is refused without the password', (line) => {
  const refusal = [UsageError, expect.not.stringMatching(/S3CRET/i)];
  try {
    read(line);
  } catch (error) {
    expect([(error as Error).constructor, (error as Error).message]).toEqual(refusal);
    return;
  }
  throw new Error('It was not refused');
});

it.each(['user:S3CRETPASS@host:6379', 'host:6379:S3CRETPASS', 'a:1,redis://:S3CRETPASS@b:1'])(
  '--cluster %s is refused without the password',
  (nodes) => {
    const refusal = /^--cluster must be host:port, or several separated by commas, but is \(\d+ characters, not shown/;
    expect(() => givenAddress({ cluster: nodes }, {})).toThrow(refusal);
  },
);

it('a user may be called like a page', () => {
  expect(read('erase --user https://ann@example.com/').given).toMatchObject({ user: 'https://ann@example.com/' });
});

const words = [
  ...COMMANDS.map(({ name }) => name),
  'help',
  '--',
  '-',
  '--url',
  '--url=',
  '--json',
  '--user',
  '-h',
  '-vx',
  '--to=',
];

it('whatever the words are, it says what is wrong or reads them', () => {
  const word = fc.oneof(fc.constantFrom(...words), fc.string(), fc.string({ unit: codePoint }));
  fc.assert(
    fc.property(fc.array(word, { maxLength: 6 }), (args) => {
      try {
        const { command, given } = readCommandLine(args, COMMANDS);
        // Then a command has all that it needs.
        if (!command || given['help'] || given['version']) return;
        for (const [name, { required }] of Object.entries(command.options))
          expect(!required || given[name]).toBeTruthy();
      } catch (error) {
        expect(error).toBeInstanceOf(UsageError);
        expect((error as Error).message).not.toBe('');
      }
    }),
    { numRuns: 2000 },
  );
});
