import { USES, userRights } from '../rights/user-rights.js';
import type { CommandCall, ExitCode } from './command.js';
import { UsageError } from './usage.error.js';

const FORMATS = ['redis', 'valkey', 'elasticache'];
const WIDTH = 110;

export async function run({ values, address, output }: CommandCall): Promise<ExitCode> {
  const { for: wanted = 'sessions', format = 'redis', 'acl-user': user = 'app', database = '0' } = values;
  const uses = wanted.split(',').map((each) => each.trim());
  const unknown = uses.find((use) => !USES.includes(use));
  if (unknown !== undefined)
    throw new UsageError(`--for has ${JSON.stringify(unknown)}, but may have ${USES.join(', ')}.`);
  if (!FORMATS.includes(format)) throw new UsageError(`--format must be ${FORMATS.join(', ')}.`);
  if (!/^\d{1,4}$/.test(database)) throw new UsageError('--database must be the number of a database.');
  const rules = userRights(uses, address.namespace, Number(database));
  // Valkey 9.1 and later: no other database.
  if (format === 'valkey') rules.push(`db=${Number(database)}`);
  const shown = format === 'elasticache' ? [accessString(rules)] : commands(user, rules);
  return output.report({ user, rules }, shown);
}

/** For `create-user --access-string`, which takes the password apart. */
function accessString(rules: readonly string[]): string {
  const isCommand = (rule: string) => rule.startsWith('+');
  return ['on', ...rules.filter((rule) => !isCommand(rule)), '-@all', ...rules.filter(isCommand)].join(' ');
}

function commands(user: string, rules: readonly string[]): string[] {
  const start = `ACL SETUSER ${user}`;
  const lines = [`${start} reset on >a-long-secret`];
  for (const rule of rules) {
    // A selector is one argument.
    const word = rule.startsWith('(') ? `"${rule}"` : rule;
    if (`${lines.at(-1)} ${word}`.length > WIDTH) lines.push(start);
    lines.push(`${lines.pop()} ${word}`);
  }
  return lines;
}
