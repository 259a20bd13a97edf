import { PassThrough } from 'node:stream';
import { callCommand } from '../../src/command/call-command.js';
import { readCommandLine } from '../../src/command/command-line.js';
import { CommandOutput } from '../../src/command/command-output.js';
import { COMMANDS } from '../../src/command/commands.js';

/** What a command prints with `--json`, called in this process, whose logger it replaces. */
export async function calledCommand(words: readonly string[]): Promise<string> {
  const result = new PassThrough();
  const line = readCommandLine([...words, '--json'], COMMANDS);
  const output = new CommandOutput(true, result, new PassThrough());
  await callCommand(line.command!, line, output, new AbortController().signal);
  return String(result.read());
}
