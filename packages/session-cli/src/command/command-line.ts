import { parseArgs } from 'node:util';
import { ADDRESS_FLAGS } from './address-flags.js';
import type { Command, CommandOptions } from './command.js';
import { MORE, PROGRAM, shownArgument, UsageError } from './usage.error.js';

export interface CommandLine {
  readonly command: Command | undefined;
  readonly argument: string | undefined;
  readonly given: Readonly<Record<string, string | boolean | undefined>>;
}

// A session id may begin with a `-`. One of express-session has 32 characters.
const LIKE_ID = /^-[\w-]{31}(?:[\w-]{11})?$/;

/** @throws UsageError that says all that is wrong */
export function readCommandLine(args: readonly string[], commands: readonly Command[]): CommandLine {
  const [first] = args;
  // Before its options: those of a command that does not exist are unknown as well.
  if (first !== undefined && !first.startsWith('-') && first !== 'help') commandCalled(first, commands);
  const { values, positionals } = parsed(args, commands);
  const asksForHelp = positionals[0] === 'help';
  const [name, argument, ...others] = asksForHelp ? positionals.slice(1) : positionals;
  const given = asksForHelp ? { ...values, help: true } : values;
  if (name === undefined) return { command: undefined, argument: undefined, given };
  const command = commandCalled(name, commands);
  if (given['help'] === true || given['version'] === true) return { command, argument, given };
  const problems = [...problemsOf(command, given, argument === undefined ? [] : [argument, ...others])];
  if (problems.length > 0) throw new UsageError(`${problems.join('\n')}\n\n${helpTextOf(command)}`);
  return { command, argument, given };
}

function* problemsOf({ name, options, argument }: Command, given: CommandLine['given'], args: readonly string[]) {
  const unexpected = args[argument ? 1 : 0];
  if (unexpected !== undefined) yield `Unexpected argument ${shownArgument(unexpected)}.`;
  if (argument?.required && args[0] === undefined) yield `${name} needs ${argument.value}.`;
  for (const [flag, { required }] of Object.entries(options)) {
    if (required && !given[flag]) yield `${name} needs the option --${flag}.`;
  }
  const known = { ...options, ...ADDRESS_FLAGS, ...GENERAL_FLAGS };
  for (const [flag, value] of Object.entries(given)) {
    if (!(flag in known)) yield `${name} has no option --${flag}.`;
    else if (!MAY_BE_URL.includes(flag) && isUrl(value)) yield `--${flag} takes no URL. ${URL_BELONGS}`;
  }
  if (argument && !MAY_BE_URL.includes(argument.value!) && isUrl(args[0]))
    yield `${argument.value} is no URL. ${URL_BELONGS}`;
}

// A user may be called like the page that says who it is, and a line of a log may name one.
const MAY_BE_URL = ['url', 'user', '<line>'];
const URL_BELONGS = 'Give the URL of Redis in REDIS_URL, or behind --url.';

/** Whether it can hold a password. What an error, or a reply of a command, says repeats other arguments. */
function isUrl(value: string | boolean | undefined): boolean {
  return typeof value === 'string' && /^rediss?:\/\/|:\/\/[^/]*@/i.test(value);
}

function commandCalled(name: string, commands: readonly Command[]): Command {
  const command = commands.find((each) => each.name === name);
  if (command) return command;
  const names = commands.map((each) => each.name).join(', ');
  throw new UsageError(`Unknown command ${shownArgument(name)}. The commands are ${names}. ${MORE}`);
}

/** Knows the options of all commands, so that it can say which one has an option. */
function parsed(args: readonly string[], commands: readonly Command[]) {
  const all = Object.assign(
    {},
    ...commands.map(({ options }) => options),
    ADDRESS_FLAGS,
    GENERAL_FLAGS,
  ) as CommandOptions;
  const ids = args.filter((arg) => LIKE_ID.test(arg));
  try {
    const { values, positionals, tokens } = parseArgs({
      args: args.filter((arg) => !ids.includes(arg)),
      allowPositionals: true,
      tokens: true,
      options: Object.fromEntries(
        Object.entries(all).map(([flag, { value, short }]) => {
          return [flag, { type: value === undefined ? 'boolean' : 'string', ...(short !== undefined && { short }) }];
        }),
      ),
    });
    const flags = tokens.filter((token) => token.kind === 'option').map(({ name }) => name);
    const twice = flags.find((name, i) => flags.indexOf(name) !== i);
    // Only the last one would count.
    if (twice !== undefined) throw new Error(`--${twice} was given more than once`);
    return { values: values as CommandLine['given'], positionals: [...positionals, ...ids] };
  } catch (error) {
    // Without the remarks of Node.js.
    const [told = ''] = (error as Error).message.split(/\.?(?:\n|$| To )/);
    const problem = told.replace(
      /^(Unknown option) '(.*[^\w-].*)'/s,
      (_, what, flag: string) => `${what} ${shownArgument(flag)}`,
    );
    throw new UsageError(`${problem}.${hintFor(problem)} ${MORE}`, { cause: error });
  }
}

function hintFor(problem: string): string {
  const [, flag] = /'(--[\w-]+)' argument is ambiguous/.exec(problem) ?? [];
  if (flag !== undefined) return ` If its value begins with a hyphen, write ${flag}=-value.`;
  return /^Unknown option '-[^-]/.test(problem) ? ' If it begins an argument, write -- before the argument.' : '';
}

const GENERAL_FLAGS: CommandOptions = {
  json: { text: 'print the result as JSON' },
  help: { short: 'h', text: 'print the help, that of one command with its name' },
  version: { short: 'v', text: 'print the version of @nest-session/redis' },
};

export function helpText(commands: readonly Command[]): string {
  return paragraphs([
    `Usage: ${PROGRAM} <command> [options]`,
    section(
      'Commands',
      commands.map(({ name, text }) => [name, text]),
    ),
    ...commands.map(optionsOf),
    ...COMMON,
    `Exit code: 0 fine, 1 could not run, 2 has findings, 3 has findings left after a repair.`,
  ]);
}

export function helpTextOf(command: Command): string {
  const { name, text, options, argument } = command;
  const required = Object.entries(options).filter(([, option]) => option.required);
  const words = [
    ...(argument ? [argument.required ? argument.value : `[${argument.value}]`] : []),
    ...required.map(([flag, { value }]) => `--${flag} ${value}`),
  ];
  const usage = ['Usage:', PROGRAM, name, ...words, '[options]'].join(' ');
  return paragraphs([usage, text, optionsOf(command), ...COMMON]);
}

function paragraphs(all: readonly string[]): string {
  return all.filter((part) => part !== '').join('\n\n');
}

type Row = readonly [name: string, text: string];

function optionsOf({ name, argument, options }: Command): string {
  const rows = [...(argument ? [[argument.value!, argument.text] as const] : []), ...rowsOf(options)];
  return rows.length === 0 ? '' : section(`Options of ${name}`, rows);
}

function rowsOf(options: CommandOptions): Row[] {
  return Object.entries(options).map(([flag, { short, value, text }]) => {
    const name = `${short === undefined ? '' : `-${short}, `}--${flag}`;
    return [value === undefined ? name : `${name} ${value}`, text];
  });
}

function section(title: string, rows: readonly Row[]): string {
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  return [`${title}:`, ...rows.map(([name, text]) => `  ${name.padEnd(width)}${text}`)].join('\n');
}

const COMMON = [section('Where Redis is', rowsOf(ADDRESS_FLAGS)), section('Other options', rowsOf(GENERAL_FLAGS))];
