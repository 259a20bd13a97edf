import { type ContentBounds, isOwnAttribute, PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import type {
  AttributeChanges,
  CreateReply,
  CreateSession,
  DeleteReply,
  IndexChanges,
  SessionLimit,
  UpdateReply,
  UpdateSession,
} from '@nest-session/core/store';
import { ATTRIBUTE_FIELD, type SessionKeys } from '../../keys/session-keys.js';
import { bytesIn } from '../../encryption/attribute-text.js';
import type { EncryptedUpdate } from '../../encryption/encrypted-session.js';
import type { NewDataKey } from '../../encryption/session-encryption.js';
import { DataKeyConflictError } from '../../encryption/session-encryption.error.js';
import { hashOfText } from './hash-of-text.js';

/** The reply of every script for one session. */
export type ScriptReply<Word extends string> = [outcome: Word, detail?: string | null];

/** Becomes a DataKeyConflictError. */
type ResealedReply = [outcome: 'resealed', id: string, wrapped?: string | null];

/**
 * `again`: the limit has ended some sessions, and there are more. `late`: the time for which there was room has passed.
 */
type UnfinishedReply = { readonly outcome: 'again' | 'late' };

/** There must be room with this principal. */
type UnplacedReply = { readonly outcome: 'unplaced'; readonly principal: string };

/** How a script that stores a session answers. */
export type StoreReply<T> = T | UnfinishedReply | UnplacedReply;

type SaveReply = [...ScriptReply<StoreReply<UpdateReply>['outcome']>, more?: undefined] | ResealedReply;

/** Room for a session of a principal. */
export interface Room {
  /** Epoch milliseconds by the clock of Redis. */
  readonly until: number;
  /** The value in the index of principals; empty: there is room only for a session of nobody. */
  readonly principal: string;
}

/**
 * The reply of the scripts that save a session.
 * @throws DataKeyConflictError when the session has another data key than the change
 */
export function toUpdateReply(reply: unknown): StoreReply<UpdateReply> {
  const [outcome, detail, wrapped] = reply as SaveReply;
  if (outcome === 'resealed') throw new DataKeyConflictError(detail, wrapped ?? undefined);
  if (outcome === 'full') return { outcome, bound: detail as keyof ContentBounds };
  if (outcome === 'conflict') return { outcome, current: detail ?? undefined };
  if (outcome === 'unplaced') return { outcome, principal: detail ?? '' };
  if (outcome === 'gone') return detail ? { outcome, rotated: true } : { outcome };
  return outcome === 'saved' && detail ? { outcome, authenticatedAt: Number(detail) } : { outcome };
}

/** The reply to the end of a session. Where nobody is signed in since a rotation, there was nothing to end. */
export function toEndReply(reply: unknown): StoreReply<UpdateReply> | DeleteReply {
  const [outcome, word] = reply as ScriptReply<DeleteReply['outcome']>;
  return outcome === 'gone' && word === 'left' ? { outcome } : toUpdateReply(reply);
}

/** The reply of create-session and take-over-session. */
export function toCreateReply(reply: unknown): StoreReply<CreateReply> {
  const [outcome, creationTime] = reply as ScriptReply<CreateReply['outcome'] | 'again' | 'late'>;
  return outcome === 'created' ? { outcome, creationTime: Number(creationTime) } : { outcome };
}

/** The first keys of every script for one session. */
export function keysOf(partition: SessionKeys, id: string): string[] {
  return [partition.bucketList, partition.events, partition.session(id), partition.shadow(id)];
}

/** The first keys of every script that stores a new session. */
export function newKeysOf(partition: SessionKeys, id: string): string[] {
  return [...keysOf(partition, id), partition.forwardingMark(id)];
}

/** With an empty value the session leaves the index. */
export function pushIndexes(args: (string | number)[], changes: IndexChanges): void {
  for (const [name, value] of changes) args.push(name, value ?? '');
}

/** The fields of a new session, each with its text. `size`: for the bounds, how many bytes it holds at most. */
export function pushNewFields(args: (string | number)[], session: NewFields): void {
  const { attributes, device, bounds, dataKey } = session;
  const { set } = fieldsOf({ attributes, device });
  args.push(...set);
  if (isBounded(bounds)) args.push('size', sizeOf(attributes));
  if (dataKey !== undefined) args.push('dataKey', dataKey);
}

/** Whether a save changes nothing but attributes, so that save-attributes can make it. Most saves are such. */
export function onlyChangesAttributes(change: EncryptedUpdate): boolean {
  const { newId, maxInactiveInterval, absoluteTimeout, signsOut, dataKeys, indexes } = change;
  if (newId !== undefined || maxInactiveInterval !== undefined || absoluteTimeout !== undefined) return false;
  return !signsOut && !dataKeys && indexes.size === 0;
}

/** What becomes of a session with a new id: whether it is cleared, and whether the old id leads nowhere. */
export function howToLeave({ clears, closes }: UpdateSession): number {
  if (clears) return 1;
  return closes ? 2 : 0;
}

/**
 * The change as save-attributes takes it. Every argument costs ioredis and Redis time, and most saves have no details.
 */
export function pushAttributeChange(args: (string | number)[], change: UpdateSession): void {
  const { set, removed } = fieldsOf(change);
  args.push(set.length / 2, ...set);
  const hasDetails = change.expected !== undefined || removed.length > 0;
  if (hasDetails || isBounded(change.bounds)) args.push(...boundsOf(change));
  if (hasDetails) args.push(...conditionOf(change), ...removed);
}

/** The change as library/change.lua takes it. */
export function pushChange(args: (string | number)[], change: EncryptedUpdate, room: Room | undefined): void {
  const {
    maxInactiveInterval = '',
    absoluteTimeout = '',
    keepsIdle = false,
    signsOut = false,
    signIn,
    indexes,
  } = change;
  const { set, removed } = fieldsOf(change);
  // The script decides which one it stores, because it knows the id that the session has in the end.
  const dataKeys = [...(change.dataKeys ?? [])].flat();
  args.push(maxInactiveInterval, absoluteTimeout, keepsIdle ? 1 : 0, signsOut ? 1 : 0);
  args.push(
    signIn ? JSON.stringify(signIn) : '',
    ...conditionOf(change),
    ...boundsOf(change),
    limitArgument(change, room),
  );
  args.push(indexes.size, dataKeys.length / 2, set.length / 2, removed.length);
  args.push(signIn ? whoOf(change, change.dataKeys?.get(change.newId ?? change.id)) : '', ageOf(change));
  pushIndexes(args, indexes);
  args.push(...dataKeys, ...set, ...removed);
}

/** Who signs in, as the event keeps it: the fields of the session that say so, and the data key that they need. */
export function whoOf({ attributes, device }: WhoSignsIn, dataKey: string | undefined): string {
  const name = attributes.get(PRINCIPAL_ATTRIBUTE) ?? undefined;
  return JSON.stringify({ [ATTRIBUTE_FIELD + PRINCIPAL_ATTRIBUTE]: name, device, dataKey });
}

/**
 * How long ago the request of a change began, in whole milliseconds, so that no two clocks are compared. To be called
 * when the script is sent: from then on, only the way to Redis is missing.
 */
export function ageOf({ begunAt }: Pick<CreateSession, 'begunAt'>): number | '' {
  return begunAt === undefined ? '' : Math.floor(performance.now() - begunAt);
}

/** The limit as the scripts take it. */
export function limitArgument({ limit }: { readonly limit?: SessionLimit | undefined }, room?: Room): string {
  if (room) return `until ${room.until} ${room.principal}`;
  return limit ? `${limit.atMost} ${limit.whenReached}` : '';
}

type WhoSignsIn = Pick<CreateSession, 'attributes' | 'device'>;

type NewFields = Pick<CreateSession, 'attributes' | 'device' | 'bounds'> & NewDataKey;

/** The fields that a change sets, each with its text, and those that it removes. */
function fieldsOf({ attributes, device }: Pick<UpdateSession, 'attributes' | 'device'>): {
  set: string[];
  removed: string[];
} {
  const [set, removed]: [string[], string[]] = [[], []];
  for (const [name, text] of attributes) {
    if (text === null) removed.push(ATTRIBUTE_FIELD + name);
    else set.push(ATTRIBUTE_FIELD + name, text);
  }
  if (device !== undefined) set.push('device', device);
  return { set, removed };
}

/** The bytes of the attributes that count for the bounds, as they were before an encryption. */
function sizeOf(attributes: AttributeChanges): number {
  let size = 0;
  for (const [name, text] of attributes) {
    if (text !== null && !isOwnAttribute(name)) size += Buffer.byteLength(name) + bytesIn(text);
  }
  return size;
}

function isBounded(bounds: ContentBounds | undefined): bounds is ContentBounds {
  return bounds !== undefined && (bounds.maxAttributes < Infinity || bounds.maxSessionSize < Infinity);
}

function boundsOf({ bounds }: Pick<UpdateSession, 'bounds'>): (string | number)[] {
  if (!isBounded(bounds)) return ['', ''];
  return [bounds.maxAttributes, bounds.maxSessionSize].map((most) => Math.min(most, Number.MAX_SAFE_INTEGER));
}

function conditionOf({ expected }: UpdateSession): [field: string, hash: string] {
  if (expected === undefined) return ['', ''];
  return [ATTRIBUTE_FIELD + expected.name, expected.text === undefined ? '' : hashOfText(expected.text)];
}
