import type { ContentBounds } from '@nest-session/core/internal';
import type {
  AttributeChanges,
  CreateReply,
  CreateSession,
  IndexChanges,
  SessionLimit,
  UpdateReply,
  UpdateSession,
} from '@nest-session/core/store';
import { ATTRIBUTE_FIELD, type SessionKeys } from '../../keys/session-keys.js';
import type { EncryptedUpdate } from '../../encryption/encrypted-session.js';
import { DataKeyConflictError } from '../../encryption/session-encryption.error.js';
import { hashOfText } from './hash-of-text.js';
import { isBounded, largestSize, sizeOf } from './session-size.js';

type Content = 'attributes' | 'bounds';

/** The reply of every script for one session. */
export type Reply<Word extends string> = [outcome: Word, detail?: string | null];

/** Becomes a DataKeyConflictError. */
type ResealedReply = [outcome: 'resealed', id: string, wrapped?: string | null];

/** `again`: the limit has ended some sessions, and there are more. `late`: the time for which there was room has passed. */
type UnfinishedReply = { readonly outcome: 'again' | 'late' };

/** There must be room with this principal. */
type UnplacedReply = { readonly outcome: 'unplaced'; readonly principal: string };

/** How a script that stores a session answers. */
export type StoreReply<T> = T | UnfinishedReply | UnplacedReply;

type SaveReply = [...Reply<StoreReply<UpdateReply>['outcome']>, more?: undefined] | ResealedReply;

/** Room for a session of a principal. */
export interface Room {
  /** Epoch milliseconds by the clock of Redis. */
  readonly until: number;
  /** The value in the index of principals; empty: there is room only for a session of nobody. */
  readonly principal: string;
}

/** The reply of save-session. @throws DataKeyConflictError when the session has another data key than the change */
export function toUpdateReply(reply: unknown): StoreReply<UpdateReply> {
  const [outcome, detail, wrapped] = reply as SaveReply;
  if (outcome === 'resealed') throw new DataKeyConflictError(detail, wrapped ?? undefined);
  if (outcome === 'full') return { outcome, bound: detail as keyof ContentBounds };
  if (outcome === 'conflict') return { outcome, current: detail ?? undefined };
  if (outcome === 'unplaced') return { outcome, principal: detail ?? '' };
  return outcome === 'saved' && detail ? { outcome, authenticatedAt: Number(detail) } : { outcome };
}

/** The reply of create-session and take-over-session. */
export function toCreateReply(reply: unknown): StoreReply<CreateReply> {
  const [outcome, creationTime] = reply as Reply<CreateReply['outcome'] | 'again' | 'late'>;
  return outcome === 'created' ? { outcome, creationTime: Number(creationTime) } : { outcome };
}

/** The first keys of every script for one session. */
export function keysOf(partition: SessionKeys, id: string): string[] {
  return [partition.bucketList, partition.events, partition.session(id), partition.shadow(id)];
}

/** The first keys of every script that stores a new session. */
export function newKeysOf(partition: SessionKeys, id: string): string[] {
  const wishes = [partition.wanted, partition.broadcastWanted('created')];
  return [...keysOf(partition, id), partition.forwardingMark(id), ...wishes];
}

/** With an empty value the session leaves the index. */
export function pushIndexes(args: (string | number)[], changes: IndexChanges): void {
  for (const [name, value] of changes) args.push(name, value ?? '');
}

/** The attributes that are set. */
export function pushAttributes(args: (string | number)[], changes: AttributeChanges): void {
  for (const [name, text] of changes) if (text !== null) args.push(ATTRIBUTE_FIELD + name, text);
}

/** A field of its own. It is JSON in a JSON string, because Spring decodes every field. */
export function pushDevice(args: (string | number)[], device: string | undefined): void {
  if (device !== undefined) args.push('device', JSON.stringify(device));
}

/** Whether a save has no details. Every argument costs ioredis and Redis time, and most saves are such. */
export function onlySetsAttributes(change: EncryptedUpdate): boolean {
  const { newId, maxInactiveInterval, absoluteTimeout, expected, dataKeys, attributes } = change;
  if (newId !== undefined || maxInactiveInterval !== undefined || absoluteTimeout !== undefined) return false;
  if (change.keepsIdle || change.signsOut || expected !== undefined || dataKeys || change.indexes.size > 0)
    return false;
  for (const text of attributes.values()) if (text === null) return false;
  return true;
}

/** How much a new session holds: the field `size`. */
export function pushSize(args: (string | number)[], { attributes, bounds }: Pick<CreateSession, Content>): void {
  if (isBounded(bounds)) args.push('size', sizeOf(attributes));
}

/** How much a save adds. What adds nothing is not counted. */
export function pushAdded(args: (string | number)[], { attributes, bounds }: Pick<UpdateSession, Content>): void {
  if (!isBounded(bounds)) return;
  const added = sizeOf(attributes);
  if (added > 0) args.push('size', added, largestSize(bounds));
}

function conditionOf({ expected, clears }: UpdateSession): string[] {
  if (expected === undefined) return [clears ? 'clear' : 'any', '', ''];
  const field = ATTRIBUTE_FIELD + expected.name;
  return expected.text === undefined ? ['none', field, ''] : ['hash', field, hashOfText(expected.text)];
}

/** The limit as the scripts take it. */
export function limitOf({ limit }: { readonly limit?: SessionLimit | undefined }, room?: Room): string {
  if (room) return `until ${room.until} ${room.principal}`;
  return limit ? `${limit.atMost} ${limit.whenReached}` : '';
}

/** The arguments of a save between those that every save has and the attributes that are set. */
export function detailsOf(change: UpdateSession, room: Room | undefined): (string | number)[] {
  const { id, newId = id, maxInactiveInterval = '', absoluteTimeout = '', keepsIdle = false, indexes } = change;
  const condition = conditionOf(change);
  const authentication = change.signIn ? JSON.stringify(change.signIn) : change.signsOut ? 'none' : '';
  const details = [newId, maxInactiveInterval, absoluteTimeout, keepsIdle ? 1 : 0, ...condition];
  details.push(authentication, indexes.size, limitOf(change, room));
  pushIndexes(details, indexes);
  for (const [name, text] of change.attributes) if (text === null) details.push(ATTRIBUTE_FIELD + name);
  return details;
}
