import { readFile } from 'node:fs/promises';
import { COMMANDS } from '../../src/command/commands.js';
import { helpText, helpTextOf } from '../../src/command/command-line.js';
import { ADDRESS_FLAGS } from '../../src/command/address-flags.js';
import { RIGHTS_BLOCKS } from '../../src/rights/user-rights.js';
import { documentedLines, type RightsName } from '../../../session-redis/test/support/documented.rights.js';

const docs = await readFile(new URL('../../../../docs/operating.md', import.meta.url), 'utf8');
const section = docs.slice(docs.indexOf('\n## The command\n'), docs.indexOf('\n## Alerts\n'));
const rows = [...section.matchAll(/^\| `([a-z][\w-]*)[^|]*` +\| ([^|]+)\|/gm)].map(([, name, text]) => [
  name!,
  text!.trim(),
]);

it('docs/operating.md has a row for each command, in the order of the help, and its sentence', () => {
  expect(rows.length).toBeGreaterThan(5);
  const plain = (text: string) => text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '');
  const told = rows.map(([name, text]) => [
    name,
    COMMANDS.find((command) => plain(text!).startsWith(command.text))?.name,
  ]);
  expect(told).toEqual(COMMANDS.map(({ name }) => [name, name]));
});

it('docs/operating.md has every option, and none that does not exist', () => {
  const known = [
    ...COMMANDS.flatMap(({ options }) => Object.keys(options)),
    ...Object.keys(ADDRESS_FLAGS),
    'json',
    'help',
    'version',
  ];
  const named = [...section.matchAll(/(?<!-)--([a-z][\w-]*)/g)].map(([, option]) => option!);
  expect([...new Set(named)].filter((option) => !known.includes(option))).toEqual([]);
  expect([...new Set(known)].filter((option) => !named.includes(option))).toEqual([]);
});

it('docs/operating.md calls commands as they can be called', () => {
  const calls = [...section.matchAll(/^\$ npx @nest-session\/cli ([\w-]+)(.*)$/gm)];
  expect(calls.length).toBeGreaterThan(3);
  for (const [, name, rest] of calls) {
    const command = COMMANDS.find((each) => each.name === name)!;
    const options = { ...command.options, ...ADDRESS_FLAGS, json: {} };
    for (const [, option] of rest!.matchAll(/--([\w-]+)/g))
      expect([name, option, option! in options]).toEqual([name, option, true]);
  }
});

it('the help has every command and every option', () => {
  const help = helpText(COMMANDS);
  for (const command of COMMANDS) {
    expect(help).toContain(command.text);
    for (const [name, { text }] of Object.entries(command.options)) {
      expect(help).toMatch(new RegExp(`--${name}\\b`));
      expect(helpTextOf(command)).toContain(text);
    }
  }
});

it.each(Object.entries(RIGHTS_BLOCKS))(
  'acl and doctor know the block "%s" of docs/securing-redis.md',
  (name, rules) => {
    const documented = documentedLines([name as RightsName]).flat();
    const isOfUser = (rule: string) => !/^(?:reset|on|>.*)$/.test(rule);
    expect(rules.length).toBe(documented.filter(isOfUser).length);
    expect(new Set<string>(rules)).toEqual(new Set(documented.filter(isOfUser)));
  },
);
