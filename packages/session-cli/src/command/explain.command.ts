import { text } from 'node:stream/consumers';
import { explainLines, type KnownLine } from '../explanation/explained-lines.js';
import type { CommandCall, ExitCode } from './command.js';
import { counted } from './shown.js';
import { UsageError } from './usage.error.js';

const UNKNOWN =
  'This version does not know the line. If its context is Session, RedisSession, ExpressSession, SessionTelemetry or ' +
  'SessionAdmin, report it as an issue of nest-session, with the version of the packages. Otherwise, another part of ' +
  'the application wrote it.';

export async function run({ argument, output }: CommandCall): Promise<ExitCode> {
  const { known, unknown } = explainLines(argument ?? (await textFromInput()));
  if (known.length === 0) {
    if (unknown === 0) throw new UsageError('explain needs a log line.');
    output.note(UNKNOWN);
    return 1;
  }
  if (unknown > 0) output.note(`${counted(unknown, 'other line')} of the text: not explained.`);
  return output.report({ lines: known, unknown }, known.flatMap(shownLine));
}

async function textFromInput(): Promise<string> {
  if (process.stdin.isTTY) throw new UsageError("explain needs a log line, in single quotes: explain '<line>'");
  return text(process.stdin);
}

function shownLine({ line, level, means, do: action, see }: KnownLine): string[] {
  const more = see === undefined ? [] : [`See the page ${JSON.stringify(see)} of the documentation.`];
  const rest = [means, action, ...more];
  return [`${level.padEnd(7)} ${line}`, ...rest.map((each) => `${' '.repeat(8)}${each}`)];
}
