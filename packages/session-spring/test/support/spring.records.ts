import { readFileSync } from 'node:fs';

// What a running Spring has stored: see recorded/README.md.

/** A key of Spring: its type, its PTTL, and what it holds. Bytes are texts, as `stored()` reads them. */
export type RecordedKey =
  | readonly [type: 'hash', ttl: number, fields: Readonly<Record<string, string>>]
  | readonly [type: 'set', ttl: number, members: readonly string[]]
  | readonly [type: 'zset', ttl: number, members: readonly (readonly [member: string, score: string])[]]
  | readonly [type: 'string', ttl: number, value: string];

/** All keys of a namespace after a step, without the namespace. */
export interface RecordedKeys {
  /** The serializer and what else was special. */
  readonly from: string;
  readonly scenario: string;
  readonly step: string;
  readonly at: number;
  readonly keys: Readonly<Record<string, RecordedKey>>;
  /** The session as the request of the step saw it in Java. */
  readonly says?: {
    readonly id: string;
    readonly creationTime: number;
    readonly lastAccessedTime: number;
    readonly maxInactiveInterval: number;
    readonly attributes: Readonly<Record<string, readonly [className: string, text: string]>>;
  };
}

/** A value in the form of each serializer that can write it. */
export interface RecordedValue {
  readonly name: string;
  readonly jdk: string;
  readonly plain?: string;
  readonly typed?: string;
  readonly secmods?: string;
}

export const RECORDED_KEYS = linesOf<RecordedKeys>('sessions');
/** Of the repository that keeps a hash and nothing else. */
export const RECORDED_SIMPLE = linesOf<RecordedKeys>('simple');
export const RECORDED_VALUES = linesOf<RecordedValue>('values');
export const RECORDED_CONTEXTS = linesOf<Required<RecordedValue>>('contexts');

/** The bytes that Spring has stored. */
export function stored(text: string): Buffer {
  return text.startsWith('!') ? Buffer.from(text.slice(1), 'base64') : Buffer.from(text);
}

function linesOf<T>(name: string): readonly T[] {
  const text = readFileSync(new URL(`../recorded/${name}.jsonl`, import.meta.url), 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}
