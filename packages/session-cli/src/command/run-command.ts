import { VERSION } from '@nest-session/redis-events/internal';
import type { ExitCode } from './command.js';
import { type CommandLine, helpText, helpTextOf, readCommandLine } from './command-line.js';
import { CommandOutput } from './command-output.js';
import { COMMANDS } from './commands.js';
import { UsageError } from './usage.error.js';

/** The program `nest-session`: does what the arguments of this process say, and sets its exit code. */
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
    const code = await run(line, output, stopping.signal);
    process.exitCode = isWritten ? code : 1;
  } catch (error) {
    const interrupted = stopping.signal.aborted && !(error instanceof UsageError);
    const message = error instanceof Error ? error.message : String(error);
    output.note(interrupted ? 'Interrupted. Run the command again to continue.' : message);
    process.exitCode = 1;
  } finally {
    output.end();
  }
}

async function run(line: CommandLine, output: CommandOutput, signal: AbortSignal): Promise<ExitCode> {
  const { command, given } = line;
  if (given['version'] === true) return output.report({ version: VERSION }, [VERSION]);
  const help = command ? helpTextOf(command) : helpText(COMMANDS);
  if (given['help'] === true) return output.report({ help }, help.split('\n'));
  if (!command) throw new UsageError(help);
  // The rest needs no NestJS, which takes most of the time of a start.
  const { callCommand } = await import('./call-command.js');
  return callCommand(command, line, output, signal);
}
