import { ADDRESS_FLAGS } from './address-flags.js';
import type { Command, CommandOption, CommandOptions } from './command.js';

const PROGRAM = 'nest-session';

/** The options of every command that are not about Redis. */
export const GENERAL_FLAGS: CommandOptions = {
  json: { text: 'print the result as JSON' },
  help: { text: 'print the help, that of one command with its name' },
  version: { text: 'print the version of @nest-session/redis' },
};

export const SHORT_FLAGS: Readonly<Record<string, string>> = { help: 'h', version: 'v' };

export const MORE = `See ${PROGRAM} --help`;

/** The help of the whole program. */
export function helpText(commands: readonly Command[]): string {
  const names = commands.map(({ name, text }) => [name, text] as const);
  return [
    `Usage: ${PROGRAM} <command> [options]`,
    section('Commands', names),
    ...commands.map(({ name, options, argument }) => optionsOf(name, { argument, options })),
    ...COMMON,
    `Exit code: 0 fine, 1 could not run, 2 has findings, 3 has findings left after a repair.`,
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** The help of one command. */
export function helpTextOf(command: Command): string {
  const { name, text, options, argument } = command;
  return [usageOf(command), text, optionsOf(name, { argument, options }), ...COMMON]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** How to call a command. */
function usageOf({ name, options, argument }: Command): string {
  const required = Object.entries(options).filter(([, option]) => option.required);
  const optional = argument && (argument.required ? argument.value : `[${argument.value}]`);
  const parts = [optional, ...required.map(([flag, { value }]) => `--${flag} ${value}`)];
  return ['Usage:', PROGRAM, name, ...parts.filter((part) => part !== undefined), '[options]'].join(' ');
}

function optionsOf(
  name: string,
  { argument, options }: { argument?: CommandOption | undefined; options: CommandOptions },
) {
  const rows = Object.entries(options).map(([flag, option]) => [shownFlag(flag, option), option.text] as const);
  const all = argument ? [[argument.value!, argument.text] as const, ...rows] : rows;
  return all.length === 0 ? '' : section(`Options of ${name}`, all);
}

function shownFlag(flag: string, { value }: CommandOption): string {
  const short = SHORT_FLAGS[flag];
  return [...(short ? [`-${short}, --${flag}`] : [`--${flag}`]), ...(value === undefined ? [] : [value])].join(' ');
}

function section(title: string, rows: readonly (readonly [name: string, text: string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  return [`${title}:`, ...rows.map(([name, text]) => `  ${name.padEnd(width)}${text}`)].join('\n');
}

const COMMON = [['Where Redis is', ADDRESS_FLAGS] as const, ['Other options', GENERAL_FLAGS] as const].map(
  ([title, flags]) =>
    section(
      title,
      Object.entries(flags).map(([flag, option]) => [shownFlag(flag, option), option.text]),
    ),
);
