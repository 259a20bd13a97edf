import { Logger } from '@nestjs/common';
import { InvalidSessionOptionsError, SessionStoreError } from '@nest-session/core';
import { givenAddress } from './address-flags.js';
import type { Command, ExitCode } from './command.js';
import type { CommandLine } from './command-line.js';
import type { CommandOutput } from './command-output.js';
import { UsageError } from './usage.error.js';

export async function callCommand(
  command: Command,
  { argument, given }: CommandLine,
  output: CommandOutput,
  signal: AbortSignal,
): Promise<ExitCode> {
  logToOutput(output, given);
  const { run } = await command.load();
  // What a command opens is closed by an abort that comes later.
  signal.throwIfAborted();
  try {
    const address = givenAddress(given, process.env);
    return await run({ address, argument, ...ownOptions(command, given), signal, output });
  } catch (error) {
    throw errorInWordsOfCommand(error, given);
  }
}

function ownOptions({ options }: Command, given: CommandLine['given']) {
  const own = Object.keys(options).map((flag) => [flag, given[flag]] as const);
  return {
    values: Object.fromEntries(own.filter((each): each is [string, string] => typeof each[1] === 'string')),
    flags: new Set(own.flatMap(([flag, value]) => (value === true ? [flag] : []))),
  };
}

/** The result has its stream for itself. What the library logs of an outage or a stray key is for a person. */
function logToOutput(output: CommandOutput, given: CommandLine['given']): void {
  const tell = (message: unknown) => output.note(inWordsOfCommand(String(message), given));
  const ignore = () => undefined;
  Logger.overrideLogger({ log: ignore, verbose: ignore, debug: ignore, warn: tell, error: tell });
}

type Given = CommandLine['given'];

const IN_WORDS_OF_COMMAND: Readonly<Record<string, string>> = {
  'cluster.nodes': '--cluster',
  cluster: '--cluster',
  sentinels: '--sentinel',
  name: '--master',
  tls: '--tls',
  username: 'REDIS_USERNAME',
  password: 'REDIS_PASSWORD',
  namespace: '--namespace',
  'events.retention': '--retention',
  // A command takes none, and reaches every server by its url.
  client: '--url',
};

/** A text of the library names its options, and whoever runs a command knows those of the command. */
function inWordsOfCommand(text: string, { url }: Given): string {
  const names: typeof IN_WORDS_OF_COMMAND = { ...IN_WORDS_OF_COMMAND, url: url === undefined ? 'REDIS_URL' : '--url' };
  return text.replace(/(?:[Oo]ptions? )?`([\w.]+)`/g, (word, name: string) => names[name] ?? word);
}

function errorInWordsOfCommand(error: unknown, given: Given): unknown {
  const told = (text: string) => inWordsOfCommand(text, given);
  if (error instanceof InvalidSessionOptionsError)
    return new UsageError(error.problems.map(told).join(' '), { cause: error });
  return error instanceof SessionStoreError ? new SessionStoreError(told(error.message), { cause: error }) : error;
}
