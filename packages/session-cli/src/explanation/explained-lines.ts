import { stripVTControlCharacters } from 'node:util';
import { KNOWN_LINES } from './known-lines.js';

/** A line that a package can write. */
export interface KnownLine {
  /** `...` stands for what differs. */
  readonly line: string;
  readonly level: string;
  readonly means: string;
  readonly do: string;
  /** The title of a page of the documentation. */
  readonly see?: string;
}

const ALL = Object.entries(KNOWN_LINES).flatMap(([level, lines]) =>
  Object.entries(lines).map(([line, texts]): KnownLine => ({ line, level, ...texts })),
);

interface Explanation {
  /** Each once, in the order in which they came. */
  readonly known: readonly KnownLine[];
  /** How many lines none of these is about. */
  readonly unknown: number;
}

const VARIES = '...';
/** What a logger writes in front of a message, with the context of the library. */
const CONTEXT = /\[(?:Session|RedisSession|ExpressSession|SessionTelemetry|SessionAdmin)\] /;
const SINCE_LAST = / \+\d+ms$/;

/** Finds what is known of the lines in a text, as they stand in a log: with or without what a logger puts around. */
export function explainLines(text: string): Explanation {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const found = lines.map(knownLine);
  const known = new Set(found.filter((line) => line !== undefined));
  return { known: [...known], unknown: found.filter((line) => line === undefined).length };
}

function knownLine(line: string): KnownLine | undefined {
  const messages = messagesIn(line);
  const isOne = ({ line: known }: KnownLine) => messages.some((message) => isAbout(known, message));
  const isInside = ({ line: known }: KnownLine) => messages.some((message) => isAbout(known, message, true));
  return mostSpecific(ALL.filter(isOne)) ?? mostSpecific(ALL.filter(isInside));
}

/** What may be the message of a line: the whole one, what is behind a context, or a text in JSON. */
function messagesIn(line: string): string[] {
  const plain = stripVTControlCharacters(line).replace(SINCE_LAST, '').trim();
  const [, behind] = plain.split(CONTEXT);
  return [plain, ...(behind === undefined ? [] : [behind]), ...textsOfJson(plain)];
}

function textsOfJson(line: string): string[] {
  try {
    const parsed: unknown = JSON.parse(line);
    const values = typeof parsed === 'object' && parsed !== null ? Object.values(parsed) : [parsed];
    return values.filter((value) => typeof value === 'string');
  } catch {
    return [];
  }
}

/** `inside`: the text may have other text around. */
function isAbout(known: string, text: string, inside = false): boolean {
  const parts = known.split(VARIES);
  const last = parts.at(-1)!;
  if (!inside && !(text.startsWith(parts[0]!) && text.endsWith(last))) return false;
  let at = 0;
  for (const part of parts) {
    const place = text.indexOf(part, at);
    if (place < 0) return false;
    at = place + part.length;
  }
  return true;
}

function mostSpecific(lines: readonly KnownLine[]): KnownLine | undefined {
  return lines.toSorted((a, b) => literal(b) - literal(a))[0];
}

function literal({ line }: KnownLine): number {
  return line.replaceAll(VARIES, '').length;
}
