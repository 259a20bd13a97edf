import { type SessionBound, SessionBoundError } from '../errors/session.errors.js';
import { isOwnAttribute, PRINCIPAL_ATTRIBUTE } from './attribute-names.js';
import type { AttributeChanges, ContentBounds, UpdateSession } from './session-change.js';
import type { SessionRecord, StoredText } from './session-record.js';

/** How much a session may hold; Infinity: any amount. */
export type SessionBounds = Readonly<Record<SessionBound, number>>;

export interface BoundedSession {
  readonly bounds: SessionBounds;
  reached(bound: SessionBound): void;
}

/**
 * What a session holds, as one object of it knows, without the library's own attributes: a session that somebody filled
 * and planted must not lock its user out.
 */
export class SessionContent {
  private constructor(
    readonly attributes: number,
    /** The names and texts in UTF-8. */
    readonly bytes: number,
  ) {}

  static of(texts: Iterable<readonly [name: string, text: StoredText]>): SessionContent {
    let attributes = 0;
    let bytes = 0;
    for (const [name, text] of texts) {
      if (isOwnAttribute(name)) continue;
      attributes++;
      bytes += sizeOf(name, text);
    }
    return new SessionContent(attributes, bytes);
  }

  /** The content after an attribute has changed; null and undefined: it is not there. */
  with(name: string, before: StoredText | null | undefined, after: string | null | undefined): SessionContent {
    if (isOwnAttribute(name)) return this;
    const attributes = this.attributes + count(after) - count(before);
    return new SessionContent(attributes, this.bytes + sizeOf(name, after) - sizeOf(name, before));
  }
}

/** @throws SessionBoundError when the text of an attribute, or the name of one that is not `stored`, is too long */
export function assertAttributeFits(session: BoundedSession, name: string, text: string, isStored: boolean): void {
  const { maxAttributeNameSize, maxAttributeSize } = session.bounds;
  // What the library makes has a size of its own. But users choose the names of their accounts.
  if (isOwnAttribute(name) && name !== PRINCIPAL_ATTRIBUTE) return;
  if (!isStored && exceeds(name, maxAttributeNameSize))
    throw refusal(session, 'maxAttributeNameSize', name, `has a name of ${Buffer.byteLength(name)} bytes`);
  if (exceeds(text, maxAttributeSize))
    throw refusal(session, 'maxAttributeSize', name, `takes ${Buffer.byteLength(text)} bytes`);
}

/** A session that exceeds a bound already may be changed, but not grow. @throws SessionBoundError */
export function assertSessionFits(
  session: BoundedSession,
  name: string,
  content: SessionContent,
  stored: SessionContent,
): void {
  const bound = isOwnAttribute(name) ? undefined : exceededBy(content, stored, session.bounds);
  if (!bound) return;
  const { attributes, bytes } = content;
  const isOneMore = bound === 'maxAttributes';
  const problem = isOneMore
    ? `would be attribute ${attributes} of its session`
    : `would make its session take ${bytes} bytes`;
  throw refusal(session, bound, name, problem);
}

/** The bound that an update would exceed in a session with these texts; undefined when it may be made. */
export function exceededBound(
  change: UpdateSession,
  texts: Iterable<readonly [name: string, text: string]>,
): keyof ContentBounds | undefined {
  const { bounds, attributes, clears, signIn, maxInactiveInterval, absoluteTimeout } = change;
  if (!bounds || signIn || maxInactiveInterval === 0 || absoluteTimeout === 0) return undefined;
  const stored = new Map(texts);
  const before = SessionContent.of(stored);
  let after = clears ? SessionContent.of([]) : before;
  for (const [name, text] of attributes) after = after.with(name, clears ? null : stored.get(name), text);
  return exceededBy(after, before, bounds);
}

function exceededBy(
  { attributes, bytes }: SessionContent,
  before: SessionContent,
  { maxAttributes, maxSessionSize }: ContentBounds,
): keyof ContentBounds | undefined {
  if (attributes > Math.max(maxAttributes, before.attributes)) return 'maxAttributes';
  return bytes > Math.max(maxSessionSize, before.bytes) ? 'maxSessionSize' : undefined;
}

export function fullError(
  session: BoundedSession,
  bound: keyof ContentBounds,
  changes: AttributeChanges,
): SessionBoundError {
  const [name] = [...changes].findLast(([each, text]) => text !== null && !isOwnAttribute(each)) ?? [''];
  return refusal(session, bound, name, 'is too much together with what other requests have stored');
}

function refusal(session: BoundedSession, bound: SessionBound, name: string, problem: string): SessionBoundError {
  session.reached(bound);
  return new SessionBoundError(bound, session.bounds[bound], name, problem, REMEDIES[bound]);
}

function exceeds(text: string, bytes: number): boolean {
  // A character takes three bytes at most.
  return text.length * 3 > bytes && Buffer.byteLength(text) > bytes;
}

function count(text: StoredText | null | undefined): 0 | 1 {
  return text === null || text === undefined ? 0 : 1;
}

function sizeOf(name: string, text: StoredText | null | undefined): number {
  if (text === null || text === undefined) return 0;
  return Buffer.byteLength(name) + (typeof text === 'string' ? Buffer.byteLength(text) : text.bytes);
}

export function sizesOf(records: readonly SessionRecord[]): { found: number; size: number } {
  const sizes = records.flatMap(({ attributes }) => [...attributes].map(([name, text]) => sizeOf(name, text)));
  return { found: records.length, size: sizes.reduce((sum, size) => sum + size, 0) };
}

const ELSEWHERE = 'keep such data elsewhere and its key in the session';

const REMEDIES: Readonly<Record<SessionBound, string>> = {
  maxAttributes: 'keep what belongs together in one attribute, and remove attributes that are no longer needed',
  maxAttributeNameSize: 'use a shorter name',
  maxAttributeSize: ELSEWHERE,
  maxSessionSize: ELSEWHERE,
};
