import { stripVTControlCharacters } from 'node:util';
import { LINES_BY_LEVEL, SHARED_LINES } from './known-lines.js';

export interface KnownLine {
  /** `...` stands for what differs. */
  readonly line: string;
  readonly level: string;
  readonly means: string;
  readonly do: string;
  /** The title of a page of the documentation. */
  readonly see?: string;
}

const ALL: readonly KnownLine[] = [
  ...Object.entries(LINES_BY_LEVEL).flatMap(([level, lines]) =>
    Object.entries(lines).map(([line, texts]) => ({ line, level, ...texts })),
  ),
  ...SHARED_LINES.flatMap(({ lines, ...texts }) => lines.map((line) => ({ line, ...texts }))),
];

const VARIES = '...';

/** Of a text as it stands in a log, with or without what a logger puts around: the lines that are known, each once. */
export function explainLines(text: string) {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const found = lines.map(knownLine);
  const known = new Set(found.filter((line) => line !== undefined));
  return { known: [...known], unknown: found.filter((line) => line === undefined).length };
}

/** Of several that a line may have, the one that says most: others may stand in what a client has put into it. */
function knownLine(line: string): KnownLine | undefined {
  // In JSON, a message has its quotes behind backslashes.
  const text = stripVTControlCharacters(line).replaceAll(String.raw`\"`, '"');
  const found = ALL.filter((each) => isIn(text, each.line));
  return found.toSorted((a, b) => literal(b) - literal(a))[0];
}

function isIn(text: string, known: string): boolean {
  let at = 0;
  for (const part of known.split(VARIES)) {
    const place = text.indexOf(part, at);
    if (place < 0) return false;
    at = place + part.length;
  }
  return true;
}

function literal({ line }: KnownLine): number {
  return line.replaceAll(VARIES, '').length;
}
