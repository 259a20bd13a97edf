import type { WarnOnce } from '../logging/warn-once.js';
import type { SecurityEvents } from '../security-events/security-events.js';
import { CSRF_ATTRIBUTE, isUninitialized, PRINCIPAL_ATTRIBUTE } from './attribute-names.js';
import { isKept, type KeptAttributes } from './kept-attributes.js';
import type { AttributeSerializer } from './attribute.serializer.js';
import type { ConcurrentUpdates } from './concurrent-updates.js';
import type { SessionBounds } from './session-bounds.js';
import {
  type ContentBounds,
  type CreateSession,
  type DeleteSession,
  FORWARDING_TIME,
  type IndexChanges,
  type SessionChange,
  type SessionDeletedReason,
  type SessionLimit,
  type UpdateSession,
  type WriteReply,
} from './session-change.js';
import { indexTerm, joined, NO_INDEXES, type SessionIndexes } from './session-indexes.js';
import type { SessionRecord } from './session-record.js';
import type { SessionBinding } from './session-response.js';
import {
  beganAt,
  endAfter,
  endOf,
  endsNow,
  haveChanged,
  type SessionTimeouts,
  type TimeoutChanges,
  timeoutChanges,
} from './session-timeouts.js';
import type { SessionKey, SessionToken } from './session-token.js';
import { PRINCIPAL_NAME_INDEX_NAME, type ProviderClaims, type SaveOutcome, type Session } from './session.js';
import type { TrackedAttributes } from './tracked-attributes.js';

export type SessionSave = CreateSession | UpdateSession | DeleteSession;

/** See `MaxSessionsOptions`. */
export interface MaxSessions extends Pick<SessionLimit, 'whenReached'> {
  readonly perPrincipal: number;
}

/** What an application requires of each of its sessions, whichever code changes it: see `SessionExtension.rule`. */
export interface SessionRule {
  /** Called before each save, which also writes what it changes. What it throws fails the save. */
  beforeSave(session: Session): void;
  /**
   * Returns the update that is made instead of one by `updateAttribute()`, which stores the attribute without a save.
   * What the returned function throws fails the update.
   */
  updating(session: Session, name: string, update: (current: unknown) => unknown): (current: unknown) => unknown;
}

export interface SessionWriter {
  readonly serializer: AttributeSerializer;
  readonly warnings: WarnOnce;
  readonly indexes: SessionIndexes;
  readonly bounds: SessionBounds;
  readonly visitorBounds?: SessionBounds | undefined;
  /** Of sessions in which somebody is signed in. */
  readonly timeouts: SessionTimeouts;
  readonly anonymousTimeout: number;
  readonly longestAbsoluteTimeout?: number | undefined;
  readonly visitorAttributes: readonly string[];
  readonly maxSessions: MaxSessions | undefined;
  readonly updates: ConcurrentUpdates;
  /** One atomic step of the store. @throws SessionStoreError when the store failed or did not reply in time */
  write(change: SessionChange): Promise<WriteReply>;
  drawKey(replaced?: string): SessionKey;
  /** The id as log lines show it: an id that is a token is replaced by a fingerprint. */
  shown(id: string): string;
  readonly securityEvents?: SecurityEvents | undefined;
  /** What each session is checked by. It may be set when the application starts. */
  rule?: SessionRule | undefined;
  /** Unset: nobody finds a session by its provider. */
  providers?: ProviderSignIns | undefined;
}

/** What sign-ins with `provider` are checked by. */
interface ProviderSignIns {
  /** What the session keeps. @throws what refuses the sign-in */
  readClaims(claims: ProviderClaims): object;
  /**
   * Asked once the sign-in is stored, and before its client hears of it: what it resolves to, or rejects with, refuses
   * the sign-in and ends the session.
   */
  confirm(session: Session): Promise<Error | undefined>;
}

/** What the store has of a session, as far as one object of the session knows; its attributes apart. */
export interface StoredState {
  /** The id in the store; undefined while the session is new. */
  readonly id: string | undefined;
  readonly creationTime: number;
  readonly lastAccessedTime: number;
  readonly authenticatedAt: number | undefined;
  readonly timeouts: SessionTimeouts;
  /** The same, without those that a save has changed that had no reply: the store may have either. */
  readonly knownTimeouts: TimeoutChanges;
  readonly memo: object | undefined;
  /** Whether the store had a user in the session when it was loaded. */
  readonly hadUser: boolean;
  /** When it was loaded, milliseconds since the store had renewed it; undefined for one that never expires. */
  readonly idleTime: number | undefined;
  /** How it ended in the store: `deleted` by this object, else `gone`, or `rotated` by another request. */
  readonly ended: 'deleted' | 'gone' | 'rotated' | undefined;
  /** Whether a save of this object has ended the session, also one that the store has forwarded. */
  readonly wasEnded: boolean;
}

/**
 * All that one object of a session knows: what the store has, and what has changed since. It never changes: each step
 * makes another one. `TrackedAttributes` knows the same of the attributes.
 */
export interface SessionState {
  readonly stored: StoredState;
  readonly id: string;
  /** Known only for a session that was created or rotated here: the store has only the id. */
  readonly token: SessionToken | undefined;
  readonly timeouts: SessionTimeouts;
  /** The ids that the client presented and that opened nothing. */
  readonly presentedIds: readonly string[];
  readonly authentication: Authentication | undefined;
  /** Whether the next save removes all attributes that the store has. */
  readonly clears: boolean;
  /** Whether the next rotation leads no change of the former id on. */
  readonly closes: boolean;
  readonly deletion: SessionDeletedReason | undefined;
  readonly keepsIdle: boolean;
  /** Until then, by the monotonic clock, a save of attributes need not renew the idle timeout either. */
  readonly isFreshUntil: number;
}

interface Authentication {
  /** The attributes that a sign-in keeps; undefined: nobody is signed in any more. */
  readonly kept: KeptAttributes | undefined;
  readonly at: number | undefined;
}

export const SIGNED_OUT: Authentication = { kept: undefined, at: undefined };

export type CreatedSession = Required<Pick<SessionState, 'token' | 'presentedIds'>>;

/** The state of a session that the store returned, or that was created here. `hadUser`: whether it has a principal. */
export function stateOf(record: SessionRecord, hadUser: boolean, created?: CreatedSession): SessionState {
  const { id, creationTime, lastAccessedTime, authenticatedAt, maxInactiveInterval, absoluteTimeout, memo } = record;
  const timeouts = { maxInactiveInterval, absoluteTimeout };
  return {
    stored: {
      id: created ? undefined : id,
      creationTime,
      lastAccessedTime,
      authenticatedAt,
      timeouts,
      knownTimeouts: timeouts,
      memo,
      hadUser,
      idleTime: idleTimeOf(record),
      ended: undefined,
      wasEnded: false,
    },
    id,
    token: created?.token,
    timeouts,
    presentedIds: created?.presentedIds ?? [],
    authentication: undefined,
    clears: false,
    closes: false,
    deletion: undefined,
    keepsIdle: false,
    isFreshUntil: -Infinity,
  };
}

/** Milliseconds since the store renewed the session: its full time to live, less what is left of it. */
function idleTimeOf(record: SessionRecord): number | undefined {
  const { lastAccessedTime, maxInactiveInterval, absoluteTimeout, timeToLive } = record;
  if (timeToLive === undefined) return undefined;
  const end = endOf(maxInactiveInterval, lastAccessedTime, endAfter(absoluteTimeout, beganAt(record)));
  return Math.max(0, end - lastAccessedTime - timeToLive);
}

export function withStored(state: SessionState, changes: Partial<StoredState>): SessionState {
  return { ...state, stored: { ...state.stored, ...changes } };
}

/** Whether the store has no such session any more, by what another request did. */
export function isGone({ stored: { ended } }: SessionState): boolean {
  return ended === 'gone' || ended === 'rotated';
}

export function authenticatedAt({ authentication, stored }: SessionState): number | undefined {
  return authentication ? authentication.at : stored.authenticatedAt;
}

export function signsIn({ authentication }: SessionState): boolean {
  return authentication?.kept !== undefined;
}

export function isNeverStored({ stored, deletion, timeouts }: SessionState): boolean {
  return stored.id === undefined && (deletion !== undefined || endsNow(timeouts));
}

/** Whether the application ends a session that another request has rotated, and that this object found gone. */
function endsRotated(state: SessionState): boolean {
  if (isNeverStored(state)) return state.presentedIds.length > 0;
  return state.deletion !== undefined && state.stored.ended === 'rotated';
}

function hasTimeouts({ timeouts, stored: { knownTimeouts } }: SessionState): boolean {
  return timeouts !== knownTimeouts && haveChanged(timeouts, knownTimeouts);
}

/** Whether there is anything to save, apart from objects that were changed in place: it encodes none. */
export function isSet(state: SessionState, attributes: TrackedAttributes): boolean {
  const { stored, id, deletion } = state;
  if (stored.ended) return endsRotated(state) || failureToStart(state, attributes) !== undefined;
  if (stored.id === undefined) return isNeverStored(state) ? endsRotated(state) : attributes.hasSet;
  return deletion !== undefined || id !== stored.id || attributes.hasSet || hasTimeouts(state);
}

/** Why a session that is found gone signs nobody in, or is not started anew: the next save says so. */
export function failureToStart(state: SessionState, attributes: TrackedAttributes): string | undefined {
  if (!isGone(state) || state.deletion) return undefined;
  if (signsIn(state)) return NOT_SIGNED_IN;
  return state.clears && attributes.hasSet ? NOT_STARTED_ANEW : undefined;
}

/**
 * Whether what should have become of a session that another request has rotated is saved as a session of its own. Not
 * for who was signed in: the session may be all that shows who they are, and has been taken from them.
 */
export function mayBeginAnew(state: SessionState, attributes: TrackedAttributes): boolean {
  const { ended, hadUser } = state.stored;
  if (ended !== 'rotated' || failureToStart(state, attributes) === undefined) return false;
  return !hadUser || !(signsIn(state) || attributes.peek(PRINCIPAL_ATTRIBUTE) !== undefined);
}

/** The next save creates a session of its own, with what it keeps. It must get another id. */
export function begunAnew(state: SessionState): SessionState {
  const presentedIds = [state.stored.id!];
  return { ...withStored(state, { id: undefined, ended: undefined, memo: undefined }), presentedIds };
}

export function failed(state: SessionState): SessionState {
  return { ...state, authentication: undefined, clears: false };
}

/** Nothing is changed any more, but for a rotation. */
export function discarded(state: SessionState): SessionState {
  const { stored, clears } = state;
  return { ...state, timeouts: stored.timeouts, authentication: clears && stored.hadUser ? SIGNED_OUT : undefined };
}

/** Nothing is changed, and the store has what was loaded later. */
export function reloaded(state: SessionState, loaded: StoredState): SessionState {
  const { lastAccessedTime, authenticatedAt: at, timeouts, memo } = loaded;
  const stored = { lastAccessedTime, authenticatedAt: at, timeouts, knownTimeouts: timeouts, memo };
  return { ...withStored(state, stored), timeouts, authentication: undefined, clears: false };
}

/**
 * What the store must be asked for next, so that it has the session as it is here; undefined when it has, or when the
 * session has ended. @throws SessionAttributeError or SessionBoundError for an object that was changed in place
 */
export function nextSave(
  state: SessionState,
  attributes: TrackedAttributes,
  binding: SessionBinding,
  writer: SessionWriter,
): SessionSave | undefined {
  const { stored, deletion: reason } = state;
  if (stored.ended && !endsRotated(state)) return undefined;
  if (stored.id === undefined) return isNeverStored(state) ? undefined : creation(state, attributes, binding, writer);
  if (reason) return { kind: 'delete', id: stored.id, reason };
  return update(state, stored.id, attributes, binding, writer);
}

function creation(
  state: SessionState,
  attributes: TrackedAttributes,
  binding: SessionBinding,
  writer: SessionWriter,
): CreateSession | undefined {
  const texts = textsToSave(state, attributes);
  if (texts.size === 0) return undefined;
  const { id, timeouts } = state;
  const { response } = binding;
  const isUsed = !isUninitialized(texts.keys());
  // Who signs in, or begins anew, gets a session of their own, whatever their client has presented.
  const presentedIds = signsIn(state) || (state.clears && isUsed) ? [] : state.presentedIds;
  if (isUsed && !state.clears && !texts.has(PRINCIPAL_ATTRIBUTE) && !texts.has(CSRF_ATTRIBUTE)) {
    // Pages that a visitor has open stay valid when the session begins; not when somebody signs in, or begins anew.
    const token = response?.visitorToken;
    if (token !== undefined) texts.set(CSRF_ATTRIBUTE, writer.serializer.serialize(`${id}:${token}`));
  }
  const indexes = writer.indexes.changesOf(texts, writer.serializer);
  return {
    kind: 'create',
    id,
    presentedIds,
    ...timeouts,
    ...(signsIn(state) && { signsIn: true }),
    device: response?.device?.(),
    attributes: texts,
    indexes,
    limit: limitOf(writer, indexes),
    begunAt: begunAt(indexes, binding),
    bounds: boundsOf(attributes, writer),
  };
}

function update(
  state: SessionState,
  id: string,
  attributes: TrackedAttributes,
  binding: SessionBinding,
  writer: SessionWriter,
): UpdateSession | undefined {
  const texts = textsToSave(state, attributes);
  const newId = state.id === id ? undefined : state.id;
  const setsTimeouts = hasTimeouts(state);
  if (texts.size === 0 && newId === undefined && !setsTimeouts) return undefined;
  const { authentication, clears, closes, timeouts } = state;
  const kept = authentication?.kept;
  const changed = writer.indexes.changesOf(texts, writer.serializer);
  const indexes = joined(indexesToLeave(state, writer), changed);
  // A user may sign in with another client than the one that created the session.
  const device = kept || indexes.get(PRINCIPAL_NAME_INDEX_NAME) ? binding.response?.device?.() : undefined;
  return {
    kind: 'update',
    id,
    newId,
    // A sign-in sets both timeouts, whatever another request may have made of them.
    ...(kept && !endsNow(timeouts) ? timeouts : timeoutChanges(timeouts, state.stored.knownTimeouts)),
    ...(authentication && (kept ? { signIn: kept } : { signsOut: true })),
    ...accessOf(state, newId === undefined && !setsTimeouts && !authentication),
    bounds: boundsOf(attributes, writer),
    device,
    attributes: texts,
    indexes,
    limit: limitOf(writer, indexes, newId && attributes.peek(PRINCIPAL_ATTRIBUTE)),
    begunAt: begunAt(indexes, binding),
    ...(clears && { clears }),
    ...(closes && newId !== undefined && { closes }),
  };
}

export function boundsOf(attributes: TrackedAttributes, { bounds, visitorBounds }: SessionWriter): SessionBounds {
  return visitorBounds && attributes.peek(PRINCIPAL_ATTRIBUTE) === undefined ? visitorBounds : bounds;
}

export function accessOf(state: SessionState, isOfAttributes: boolean): Pick<UpdateSession, 'keepsIdle' | 'memo'> {
  const { memo } = state.stored;
  // A user who signs in is there, whatever the route says.
  const keepsIdle = (state.keepsIdle && !signsIn(state)) || (isOfAttributes && performance.now() < state.isFreshUntil);
  return { ...(keepsIdle && { keepsIdle }), ...(memo && { memo }) };
}

function textsToSave(state: SessionState, attributes: TrackedAttributes): Map<string, string | null> {
  const texts = attributes.changes();
  // Only a session that begins anew holds any.
  const held = state.stored.id === undefined ? attributes.stored.readable : [];
  for (const [name, text] of held) if (!texts.has(name)) texts.set(name, text);
  if (state.clears) return texts;
  // What a sign-in has left behind before another one, or a sign-out, took its place: the store only knows the rule of
  // the last one.
  const kept = state.authentication?.kept;
  for (const name of attributes.stored.namesLeft)
    if (!texts.has(name) && (!kept || isKept(name, kept))) texts.set(name, null);
  return texts;
}

function indexesToLeave({ clears, authentication }: SessionState, { indexes }: SessionWriter): IndexChanges {
  if (clears) return indexes.leave();
  const kept = authentication?.kept;
  return kept ? indexes.leave((name) => isKept(name, kept)) : NO_INDEXES;
}

/** The limit for a save that lists the session under a principal, or gives another id to one of this principal. */
function limitOf({ maxSessions }: SessionWriter, indexes: IndexChanges, name?: unknown): SessionLimit | undefined {
  if (!maxSessions) return undefined;
  let principal = indexes.get(PRINCIPAL_NAME_INDEX_NAME);
  if (principal === undefined) principal = typeof name === 'string' ? indexTerm(name) : undefined;
  const { perPrincipal, whenReached } = maxSessions;
  return principal ? { principal, atMost: perPrincipal, whenReached } : undefined;
}

/** When the request began that makes the session one of a principal; undefined: it does not, or is none. */
function begunAt(indexes: IndexChanges, { caller }: SessionBinding): number | undefined {
  const principal = indexes.get(PRINCIPAL_NAME_INDEX_NAME);
  return principal ? caller?.begunAt(principal) : undefined;
}

/** A save on its way, with the state that it was made of: until the reply, the application may change more. */
export interface SentSave {
  readonly save: SessionSave;
  readonly from: SessionState;
}

export function sent(state: SessionState, save: SessionSave): SessionState {
  if (save.kind !== 'update' || (save.maxInactiveInterval ?? save.absoluteTimeout) === undefined) return state;
  const { maxInactiveInterval, absoluteTimeout } = state.stored.knownTimeouts;
  return withStored(state, {
    knownTimeouts: {
      maxInactiveInterval: save.maxInactiveInterval === undefined ? maxInactiveInterval : undefined,
      absoluteTimeout: save.absoluteTimeout === undefined ? absoluteTimeout : undefined,
    },
  });
}

export interface Settlement {
  readonly state: SessionState;
  /** Unset: the store has refused it, and nothing has changed. */
  readonly outcome?: SaveOutcome;
  readonly limit?: 'maxSessions' | keyof ContentBounds;
  /** Why it is an error although the store has not failed. */
  readonly failure?: string;
}

/**
 * The state of a session after the reply to a save. `attributes`: as they are before they take over what was saved.
 * The caller gives the session another id at a `collision`, before it comes here.
 */
export function settle(
  state: SessionState,
  { save, from }: SentSave,
  reply: WriteReply,
  attributes: TrackedAttributes,
): Settlement {
  switch (reply.outcome) {
    case 'refused':
      return { state, limit: 'maxSessions' };
    case 'full':
      return { state, limit: reply.bound };
    case 'revoked':
      return { state, failure: REVOKED };
    case 'gone':
    case 'collision':
    case 'conflict':
      return settleGone(withStored(state, { ended: endOfReply(reply) }), save, attributes);
  }
  if (save.kind === 'delete' || endsNow(save)) {
    // After a rotation elsewhere, this request must not make the client forget its new token.
    const ended = reply.outcome === 'forwarded' ? 'gone' : 'deleted';
    return { state: withStored(state, { ended, wasEnded: true }), outcome: ended === 'gone' ? 'gone' : 'saved' };
  }
  return { state: saved(state, save, from, reply, attributes), outcome: 'saved' };
}

function saved(
  state: SessionState,
  save: CreateSession | UpdateSession,
  { authentication }: SessionState,
  reply: WriteReply,
  attributes: TrackedAttributes,
): SessionState {
  const { maxInactiveInterval, absoluteTimeout } = state.stored.timeouts;
  const timeouts = {
    maxInactiveInterval: save.maxInactiveInterval ?? maxInactiveInterval,
    absoluteTimeout: save.absoluteTimeout ?? absoluteTimeout,
  };
  const created = reply.outcome === 'created' ? reply : undefined;
  const at = created?.creationTime ?? (reply.outcome === 'saved' ? reply.authenticatedAt : undefined);
  return {
    ...state,
    stored: {
      ...state.stored,
      id: (save.kind === 'update' ? save.newId : undefined) ?? save.id,
      timeouts,
      knownTimeouts: timeouts,
      ...(created && {
        creationTime: created.creationTime,
        lastAccessedTime: created.creationTime,
        memo: created.memo,
      }),
      ...(authentication && { authenticatedAt: authentication.kept && (at ?? authentication.at) }),
    },
    // Otherwise somebody has signed in or out, or the session was cleared, during the save.
    authentication: state.authentication === authentication ? undefined : state.authentication,
    clears: state.clears && attributes.leavesMore,
    closes: state.closes && !(save.kind === 'update' && save.closes),
    // Another timeout may have to be renewed earlier.
    isFreshUntil: save.maxInactiveInterval === undefined ? state.isFreshUntil : -Infinity,
  };
}

/** What has become of a save that finds its session gone. What should have begun with it may begin anew. */
function settleGone(state: SessionState, save: SessionSave, attributes: TrackedAttributes): Settlement {
  const outcome = 'gone';
  if (mayBeginAnew(state, attributes)) return { state, outcome };
  if (save.kind === 'delete' || endsNow(save)) {
    if (state.stored.ended === 'gone') return { state, outcome };
    return { state: failed(withStored(state, { ended: 'gone' })), outcome, failure: NOT_ENDED };
  }
  const failure = failureOf(save);
  return failure === undefined ? { state, outcome } : { state: failed(state), outcome, failure };
}

function failureOf(save: CreateSession | UpdateSession): string | undefined {
  if (save.kind === 'create') return isUninitialized(save.attributes.keys()) ? undefined : NOT_CREATED;
  if (save.signIn) return NOT_SIGNED_IN;
  return save.clears && save.attributes.size > 0 ? NOT_STARTED_ANEW : undefined;
}

/** The state after the sessions that a request presented were to end, before it had one of its own. */
export function settlePresented(state: SessionState, replies: readonly WriteReply[]): Settlement {
  const after = { ...state, presentedIds: [] };
  if (replies.some((reply) => endOfReply(reply) === 'rotated'))
    return { state: failed(after), outcome: 'gone', failure: NOT_ENDED };
  const wasEnded = state.stored.wasEnded || replies.some(({ outcome }) => outcome !== 'gone');
  return { state: withStored(after, { wasEnded }), outcome: 'saved' };
}

function endOfReply(reply: WriteReply): 'gone' | 'rotated' {
  return 'rotated' in reply && reply.rotated ? 'rotated' : 'gone';
}

export const NOT_CREATED =
  'The session was not created: the token that the request presented was replaced less than ' +
  `${FORWARDING_TIME / 1000} s ago`;

export const NOT_SIGNED_IN =
  'Nobody was signed in: the session had ended in the meantime, or another request had changed its id';

const REVOKED =
  'Nobody was signed in: every session of the user was ended after the request began, as a change of the password does. ' +
  'In a request that ends them itself and then signs the user in, pass its session to Sessions.endAll() as `except`';

const NOT_ENDED =
  'No session was ended: another request had changed the id of the session, and it is no longer the session of the ' +
  'same user';

const NOT_STARTED_ANEW =
  'No session was started anew: the session had ended in the meantime, or another request had changed its id';
