import { Logger } from '@nestjs/common';
import { givenAddress } from './address-flags.js';
import type { Command, ExitCode } from './command.js';
import type { CommandLine } from './command-line.js';
import type { CommandOutput } from './command-output.js';
import { errorInWordsOfCommand, inWordsOfCommand } from './in-words-of-command.js';

/** Loads a command and does what the command line says. Whatever it logs or throws is in the words of the command. */
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
