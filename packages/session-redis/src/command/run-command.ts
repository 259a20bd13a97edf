import { Logger } from '@nestjs/common';
import { VERSION } from '../configuration/version.js';
import { addressOf, errorInWordsOfCommand, inWordsOfCommand } from './address-flags.js';
import type { Command, ExitCode } from './command.js';
import { type CommandLine, readCommandLine } from './command-line.js';
import { CommandOutput } from './command-output.js';
import { COMMANDS } from './commands.js';
import { helpText, helpTextOf } from './help-text.js';
import { UsageError } from './usage.error.js';

/** The program `nest-session-redis`: does what the arguments of this process say, and sets its exit code. */
export async function runCommand(): Promise<void> {
  const args = process.argv.slice(2);
  let isWritten = true;
  const output = new CommandOutput(args.includes('--json'), process.stdout, process.stderr, ({ message }) => {
    if (isWritten) output.note(`The result cannot be written: ${message}`);
    isWritten = false;
    process.exitCode = 1;
  });
  const stopping = new AbortController();
  // A second signal ends the process at once.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort());
  try {
    const line = readCommandLine(args, COMMANDS);
    logToOutput(output, line);
    const code = await run(line, output, stopping.signal);
    process.exitCode = isWritten ? code : 1;
  } catch (error) {
    const interrupted = stopping.signal.aborted && !(error instanceof UsageError);
    output.note(interrupted ? 'Interrupted. Run the command again to continue.' : messageOf(error));
    process.exitCode = 1;
  } finally {
    output.end();
  }
}

async function run(
  { command, argument, given }: CommandLine,
  output: CommandOutput,
  signal: AbortSignal,
): Promise<ExitCode> {
  if (given['version'] === true) return printed(output, { version: VERSION }, VERSION);
  const help = command ? helpTextOf(command) : helpText(COMMANDS);
  if (given['help'] === true) return printed(output, { help }, help);
  if (!command) throw new UsageError(help);
  try {
    const address = addressOf(given, process.env);
    return await command.run({ address, argument, ...ownOptions(command, given), signal, output });
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

function printed(output: CommandOutput, json: object, text: string): ExitCode {
  output.report(json, text.split('\n'));
  return 0;
}

/** The result has its stream for itself. What the library logs of an outage or a stray key is for a person. */
function logToOutput(output: CommandOutput, { given }: CommandLine): void {
  const tell = (message: unknown) => output.note(inWordsOfCommand(String(message), given));
  const ignore = () => undefined;
  Logger.overrideLogger({ log: ignore, verbose: ignore, debug: ignore, warn: tell, error: tell });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
