import { PassThrough } from 'node:stream';
import { callCommand } from '../../src/command/call-command.js';
import { readCommandLine } from '../../src/command/command-line.js';
import { CommandOutput } from '../../src/command/command-output.js';
import { COMMANDS } from '../../src/command/commands.js';

// One after the other: Jest mixes up modules that two imports link at a time.
for (const { load } of COMMANDS) await load();

/** What a command prints with `--json`, called in this process, whose logger it replaces. */
export async function calledCommand(words: readonly string[]): Promise<string> {
  const { result } = await called([...words, '--json'], true);
  return result;
}

/** All that a command prints, as text and with `--json`, and what it throws. */
export async function toldByCommand(words: readonly string[]): Promise<string> {
  const all = [];
  for (const isJson of [false, true]) {
    const told = await called([...words, ...(isJson ? ['--json'] : [])], isJson).catch((error: unknown) =>
      String(error),
    );
    all.push(typeof told === 'string' ? told : told.result + told.notes);
  }
  return all.join('\n');
}

async function called(words: readonly string[], isJson: boolean) {
  const [result, notes] = [new PassThrough(), new PassThrough()];
  const line = readCommandLine(words, COMMANDS);
  await callCommand(line.command!, line, new CommandOutput(isJson, result, notes), new AbortController().signal);
  return { result: String(result.read() ?? ''), notes: String(notes.read() ?? '') };
}
