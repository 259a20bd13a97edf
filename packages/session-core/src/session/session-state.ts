import { SessionGoneError } from '../errors/session.errors.js';
import type { SecurityEventKind } from '../security-events/security-event.js';
import type { SecurityReport } from '../security-events/security.events.js';
import type {
  AttributeChanges,
  CreateSession,
  IndexChanges,
  SessionLimit,
  UpdateSession,
  WriteReply,
} from './session-change.js';
import { LIFETIME_ATTRIBUTES, REMEMBER_ME_ATTRIBUTE } from './own-attributes.js';
import { isKept, NOT_SIGNED_IN } from './sign-in.js';
import type { SessionToken } from './session-token.js';
import type { SessionRecord } from './session-record.js';
import { joined, NO_INDEXES } from './session-indexes.js';
import { limitOf } from './session-limit.js';
import type { SessionSave, SessionWriter } from './session-writer.js';
import { PRINCIPAL_NAME_INDEX_NAME, type SaveOutcome } from './session.js';
import { type AttributesOwner, StoredAttributes } from './stored-attributes.js';
import { TrackedAttributes } from './tracked-attributes.js';
import { type AuthenticationChange, TrackedAuthentication } from './tracked-authentication.js';
import type { SessionResponse } from './session-response.js';
import { idleTimeOf, type SessionTimeouts, TrackedTimeouts } from './tracked-timeouts.js';

/** The state of one session object: the changes of the application, and what the store has. */
export class SessionState {
  attributes: TrackedAttributes;
  timeouts: TrackedTimeouts;
  /** Milliseconds since the store last renewed the session; undefined for a session that never expires. */
  readonly idleTime: number | undefined;
  creationTime: number;
  lastAccessedTime: number;
  authentication: TrackedAuthentication;
  id: string;
  /** Known only for a session that was created or rotated here: the store has only the id. */
  token: SessionToken | undefined;
  /** The id in the store; undefined while the session is new. */
  storedId: string | undefined;
  isInvalidated = false;
  /** How the session ended in the store, as far as this object knows: `deleted` by this object, else `gone`. */
  ended: 'deleted' | 'gone' | undefined;
  keepsIdle = false;
  /** Knows the client of the request. */
  client: Pick<SessionResponse, 'request' | 'device' | 'mayCreate' | 'isAborted'> | undefined;
  /** What the store needs to know of the session. */
  memo: object | undefined;
  /** Runs before each save. */
  beforeSave: (() => void) | undefined;
  readonly #owner: AttributesOwner;
  /** Whether the store still has attributes that `clear()` removed here. */
  #clears = false;
  /** The attributes that the last save was made of: `clear()` and others may have replaced them during the save. */
  #written: TrackedAttributes;

  /** Of a new session. `presentedIds`: the ids that the client presented and that opened nothing. */
  static create(writer: SessionWriter, timeouts: SessionTimeouts, presentedIds: readonly string[]): SessionState {
    const { id, token } = writer.drawKey();
    const now = Date.now();
    const record = { id, creationTime: now, lastAccessedTime: now, ...timeouts, timeToLive: undefined, attributes: [] };
    return new SessionState(record, writer, token, presentedIds);
  }

  constructor(
    record: SessionRecord,
    private readonly writer: SessionWriter,
    token?: SessionToken,
    private readonly presentedIds: readonly string[] = [],
  ) {
    const { serializer, undecodable, bounds, warnings } = writer;
    this.#owner = {
      undecodable,
      bounds,
      warnings,
      shownId: () => writer.shown(record.id),
      reached: (bound) => this.reportLimit(bound),
    };
    this.attributes = new TrackedAttributes(new StoredAttributes(record.attributes, serializer, this.#owner));
    this.#written = this.attributes;
    this.timeouts = new TrackedTimeouts(record);
    this.idleTime = idleTimeOf(record);
    this.creationTime = record.creationTime;
    this.lastAccessedTime = record.lastAccessedTime;
    this.authentication = new TrackedAuthentication(record.authenticatedAt);
    this.id = record.id;
    this.token = token;
    this.storedId = token ? undefined : record.id;
    this.memo = record.memo;
  }

  /** Reports a security event, with the request on whose behalf the session changes, if there is one. */
  report(kind: SecurityEventKind, report: SecurityReport): void {
    this.writer.securityEvents?.report(kind, { request: this.client?.request, ...report });
  }

  /** Reports that the limit of this option refuses a change. */
  reportLimit(limit: string): void {
    const name = this.attributes.peek(PRINCIPAL_NAME_INDEX_NAME);
    const principalName = typeof name === 'string' ? name : undefined;
    this.report('limit-reached', { limit, sessionId: this.storedId, principalName });
  }

  /** The token to send to the client: that of a session that was created or rotated here, once it is stored. */
  get tokenToSend(): SessionToken | undefined {
    const isStored = !this.isOver && this.ended === undefined && this.storedId === this.id;
    return isStored ? this.token : undefined;
  }

  get isNew(): boolean {
    return this.storedId === undefined;
  }

  /** Whether this object ended the session, or will end it at the save. */
  get isOver(): boolean {
    return this.isInvalidated || this.ended === 'deleted';
  }

  /** Whether there is anything to save. */
  get isDirty(): boolean {
    // What was set comes first, because it needs no encoding.
    return this.isSet || (!this.ended && !this.isNeverStored && this.attributes.hasChangedInPlace);
  }

  /** Whether there is anything to save, apart from objects that were changed in place. */
  get isSet(): boolean {
    if (this.ended || this.isNeverStored) return false;
    if (this.isInvalidated) return true;
    if (this.attributes.hasSet) return true;
    return !this.isNew && (this.id !== this.storedId || this.timeouts.hasChanges);
  }

  /** Whether it is new and ends at once. */
  get isNeverStored(): boolean {
    return this.isNew && (this.isInvalidated || this.timeouts.endNow);
  }

  /** Removes all attributes. The session must be rotated as well. */
  clear(): void {
    this.attributes = new TrackedAttributes(new StoredAttributes([], this.writer.serializer, this.#owner));
    this.#clears = true;
    this.signOut();
  }

  /**
   * Signs a principal in, for the remembered seconds if any. Only the attributes of `keep` stay; unset: all but those
   * bound to the visitor. The session must be rotated as well.
   */
  signIn(name: string, rememberedFor: number | undefined, keep: readonly string[] | undefined): void {
    if (this.ended === 'gone') throw new SessionGoneError(NOT_SIGNED_IN);
    const { visitorAttributes, timeouts } = this.writer;
    // First, because nothing may have changed when the name is too long.
    this.attributes.encode(PRINCIPAL_NAME_INDEX_NAME, name);
    const kept = { only: keep && [...keep], butNot: [...visitorAttributes, ...LIFETIME_ATTRIBUTES] };
    this.authentication.signIn(this.attributes, kept);
    this.attributes = this.attributes.only((each) => isKept(each, kept));
    this.attributes.set(PRINCIPAL_NAME_INDEX_NAME, name);
    if (rememberedFor !== undefined) this.attributes.set(REMEMBER_ME_ATTRIBUTE, true);
    this.timeouts.set('maxInactiveInterval', rememberedFor ?? timeouts.maxInactiveInterval);
    this.timeouts.set('absoluteTimeout', timeouts.absoluteTimeout);
  }

  /** Sets or removes the principal. The idle timeout of visitors becomes that of users, or the other way round. */
  setPrincipal(name: string | undefined): void {
    const { timeouts, anonymousTimeout } = this.writer;
    const hadOne = this.attributes.peek(PRINCIPAL_NAME_INDEX_NAME) !== undefined;
    this.attributes.set(PRINCIPAL_NAME_INDEX_NAME, name);
    if (!hadOne && name !== undefined) this.timeouts.exchange(anonymousTimeout, timeouts.maxInactiveInterval);
    if (hadOne && name === undefined) this.timeouts.exchange(timeouts.maxInactiveInterval, anonymousTimeout);
    if (name === undefined) this.signOut();
  }

  /** Nobody is signed in any more, as far as a sign-in has said so. */
  signOut(): void {
    this.authentication.signOut(this.attributes);
  }

  /** Whether the store may still have an attribute that a sign-in did not keep. */
  isLeftBehind(name: string): boolean {
    const { kept } = this.authentication;
    return kept !== undefined && !isKept(name, kept);
  }

  /** Forgets the changes that are not saved, but for a rotation. */
  discard(): void {
    const { attributes, at } = this.authentication.asStored(this.attributes);
    this.attributes = (this.#clears ? this.attributes : attributes).asStored();
    this.timeouts = this.timeouts.asStored();
    if (!this.#clears) this.authentication = new TrackedAuthentication(at);
  }

  /** Forgets all changes, and takes over what was loaded later. */
  replaceBy({ attributes, timeouts, lastAccessedTime, authentication, memo }: SessionState): void {
    this.memo = memo;
    this.attributes = attributes;
    this.timeouts = timeouts;
    this.lastAccessedTime = lastAccessedTime;
    this.authentication = authentication;
  }

  /** The parts of an update that do not depend on what it changes: whether it counts as an access, memo and bounds. */
  get access(): Pick<UpdateSession, 'keepsIdle' | 'memo' | 'bounds'> {
    const { memo } = this;
    const { bounds } = this.writer;
    // Whoever signs in is there, whatever the route says.
    const access = this.keepsIdle && !this.authentication.kept ? { keepsIdle: true, bounds } : { bounds };
    return memo ? { ...access, memo } : access;
  }

  /** The save of everything that the store does not have yet; undefined when there is nothing to save. */
  nextSave(): SessionSave | undefined {
    const { storedId } = this;
    if (this.ended) return undefined;
    if (storedId === undefined) return this.#creation();
    return this.isInvalidated ? { kind: 'delete', id: storedId } : this.#update(storedId);
  }

  /** Records how the store answered a save. */
  settle(save: SessionSave, reply: WriteReply): SaveOutcome {
    const { outcome } = reply;
    if (outcome === 'gone' || outcome === 'collision' || outcome === 'conflict') return (this.ended = 'gone');
    if (outcome === 'created') {
      this.creationTime = this.lastAccessedTime = reply.creationTime;
      this.memo = reply.memo;
    }
    this.authentication.settle(save, reply);
    if (save.kind === 'delete' || (save.kind === 'update' && save.maxInactiveInterval === 0)) {
      // After a rotation elsewhere, this request must not make the client forget its new token.
      this.ended = outcome === 'forwarded' ? 'gone' : 'deleted';
      return this.ended === 'gone' ? 'gone' : 'saved';
    }
    this.storedId = (save.kind === 'update' ? save.newId : undefined) ?? save.id;
    this.timeouts.saved(save);
    this.#written.saved(save.attributes);
    // A session that is cleared during its creation has other attributes now.
    if (this.#written === this.attributes) this.#clears = false;
    else if (!this.#clears) this.attributes.savedBefore(save.attributes, (name) => !this.isLeftBehind(name));
    return 'saved';
  }

  #creation(): CreateSession | undefined {
    const { id, presentedIds, timeouts } = this;
    if (this.isNeverStored) return undefined;
    this.#written = this.attributes;
    const attributes = this.attributes.changes();
    if (attributes.size === 0) return undefined;
    const device = this.client?.device?.();
    const indexes = this.#indexesOf(attributes);
    const limit = this.#limitOf(indexes);
    const { bounds } = this.writer;
    const content = { attributes, indexes, limit, bounds };
    const creation = { kind: 'create', id, presentedIds, ...timeouts.all, device, ...content } as const;
    return this.authentication.signsIn() ? { ...creation, signsIn: true } : creation;
  }

  #update(id: string): UpdateSession | undefined {
    const { timeouts } = this;
    const attributes = (this.#written = this.attributes).changes();
    const newId = this.id === id ? undefined : this.id;
    if (attributes.size === 0 && newId === undefined && !timeouts.hasChanges) return undefined;
    const authentication = this.authentication.change(timeouts);
    const indexes = joined(this.#indexesToLeave(authentication), this.#indexesOf(attributes));
    // Who signs in may use another client than who created the session.
    const signsIn = authentication.signIn ?? indexes.get(PRINCIPAL_NAME_INDEX_NAME);
    const device = signsIn ? this.client?.device?.() : undefined;
    const update = {
      kind: 'update',
      id,
      newId,
      ...timeouts.changes(),
      ...authentication,
      ...this.access,
      device,
      attributes,
      indexes,
      limit: this.#limitOf(indexes, newId),
    } as const;
    return this.#clears ? { ...update, clears: true } : update;
  }

  /** The indexes of the attributes that a save takes from the session. */
  #indexesToLeave({ signIn }: AuthenticationChange): IndexChanges {
    if (this.#clears) return this.writer.indexes.leave();
    return signIn ? this.writer.indexes.leave((name) => isKept(name, signIn)) : NO_INDEXES;
  }

  #limitOf(indexes: IndexChanges, newId?: string): SessionLimit | undefined {
    const rotated = () => (newId === undefined ? undefined : this.attributes.peek(PRINCIPAL_NAME_INDEX_NAME));
    return limitOf(this.writer.maxSessions, indexes, rotated);
  }

  #indexesOf(attributes: AttributeChanges): IndexChanges {
    return this.writer.indexes.changesOf(attributes, this.writer.serializer);
  }
}
