import { Inject, Injectable } from '@nestjs/common';
import { assertObject, assertString } from '../option-reading/assert-argument.js';
import { IndexedSessionRepository } from '../repository/indexed-session.repository.js';
import type { SessionRepository } from '../repository/session.repository.js';
import { PRINCIPAL_NAME_INDEX_NAME, type ReadonlySession, type Session, shownBy } from '../session/session.js';
import { assertPrincipalName, PRINCIPAL_ATTRIBUTE } from '../session/attribute-names.js';
import type { SessionInfo } from '../session/session-info.js';
import { indexTerm } from '../session/session-indexes.js';
import { TrackedSession } from '../session/tracked-session.js';
import { requestOf } from './call.js';
import type { RequestSession } from './request-session.js';
import { RequestSessions } from './request-sessions.js';
import { ResponseCommit } from './response-commit.js';
import { endForeign } from './session-takeover.js';
import { isUpgrade } from './request-session.loader.js';

/**
 * The sessions of the application: those of a principal, and that of a request for code that has no `@Session()`. What
 * cannot be meant, such as a name that is undefined, rejects with a TypeError.
 */
@Injectable()
export class Sessions {
  /** @internal Inject it. */
  constructor(@Inject(RequestSessions) private readonly requests: RequestSessions) {}

  /**
   * The session that a request presents: of an upgrade, in a server of ws, in `handleConnection()` of a gateway. Pass
   * the request of Node.js, Express or Fastify, a socket of socket.io, or the client of a gateway. Each call asks the
   * store, and renews the idle timeout when a touch is due; only an HTTP request has one session for all calls.
   *
   * Resolves to null when the request presents no live session or is excluded, and for a WebSocket that a page of a
   * foreign origin opens. While the store is down, it resolves to an empty session in an HTTP request whose route has
   * `@SessionOutagePolicy('anonymous')`. Changes are saved by `await session.save()`. Over an open connection, the
   * session id cannot be changed.
   * @throws SessionStoreError when the store failed; ConflictException when the request presents the sessions of two
   *   principals, with `security: 'strict'`; TypeError for anything but a request
   */
  async load(request: object): Promise<Session | null> {
    const incoming = requestOf(request);
    const known = isUpgrade(incoming) ? undefined : ResponseCommit.of(incoming)?.session;
    if (known) return ofHttpRequest(known);
    if (isUpgrade(incoming) && !this.requests.allowsOriginOf(incoming)) return null;
    if (this.requests.excludes(incoming)) return null;
    const detached = await this.requests.detached(incoming);
    void detached.touch?.send();
    return detached.existing || detached.isUnavailable ? detached.session : null;
  }

  /**
   * The live sessions of a principal: `for await (const { id, device } of sessions.ofPrincipal(name))`. As
   * `IndexedSessionRepository.listByIndex()` lists them. @throws SessionStoreError when the store failed
   */
  ofPrincipal(name: string): AsyncIterable<SessionInfo> {
    this.requests.parts.extension.listsSessions = true;
    return this.#indexed.listByIndex(PRINCIPAL_NAME_INDEX_NAME, name);
  }

  /**
   * How many sessions a principal has. One that has expired counts until the store has noticed that, within a minute.
   * @throws SessionStoreError when the store failed
   */
  async count(name: string): Promise<number> {
    return this.#indexed.countByIndex(PRINCIPAL_NAME_INDEX_NAME, name);
  }

  /**
   * Ends a session and records its deleted event. With `of`, only if it is a session of this principal, which the store
   * checks in the same step: pass it whenever the id comes from a client. No session is of `undefined`, the principal
   * of a visitor. False when there is no such session. While sessions of another library are taken over, it takes the
   * ids that this library had given as well.
   * @throws SessionStoreError when the store failed
   */
  async end(id: string, options: { readonly of?: string | undefined } = {}): Promise<boolean> {
    assertString('The id of a session', id);
    assertObject('The second argument', options);
    if ('of' in options && options.of === undefined) return false;
    return (await this.#end(id, options.of)) || this.#endForeign(id, options.of);
  }

  #end(id: string, of: string | undefined): Promise<boolean> {
    if (of === undefined) return this.#repository.deleteById(id);
    return this.#indexed.deleteIfListed(id, PRINCIPAL_NAME_INDEX_NAME, of);
  }

  /** Ends what another library keeps under an id, and what has become of it here under the id that it got. */
  async #endForeign(id: string, of: string | undefined): Promise<boolean> {
    const named = this.requests.named(id, of);
    if (!named) return false;
    const wasThere = await endForeign(this.#repository, named.foreign, named.id);
    const wasMoved = await this.#end(named.id, of);
    if (of === undefined && !wasThere && !wasMoved && !this.requests.mayHave(id)) named.foreign.reportUnknown();
    return wasThere || wasMoved;
  }

  /**
   * Ends every session that a principal has at the moment of the call, with a deleted event for each. Returns how many
   * this call ended. A session that is rotated meanwhile ends as well. A request that began before the call, and signs
   * the principal in after it, gets a 409 response. One that begins later signs them in: save a new password before you
   * call it. To sign the principal in after the call in the same request, pass its session as `except`, also a new one.
   * When it fails, some may have ended: call it again.
   *
   * `except`: the session that stays, or its id. Pass the session of the request itself: before the first byte of the
   * response, it also gets another id and token, and whoever else has the former token is shut out, with what they have
   * begun or left open.
   * @throws SessionStoreError when the store failed; TypeError for what `signIn()` takes for no name, such as a number
   */
  async endAll(
    name: string,
    options: { readonly except?: ReadonlySession | string | undefined } = {},
  ): Promise<number> {
    // A name of nobody ends nothing, and the caller would think that the user is signed out.
    assertPrincipalName(name);
    assertObject('The second argument', options);
    const stays = trackedOf(options.except);
    // A save that is on its way knows nothing of this.
    await stays?.lastSave?.catch(() => undefined);
    if (stays?.peekAttribute(PRINCIPAL_ATTRIBUTE) === name) stays.shutOut();
    const ids = idsOf(options.except, stays);
    const ended = await this.#indexed.deleteByIndex(PRINCIPAL_NAME_INDEX_NAME, name, ids);
    // What these requests save from now on was not begun before.
    for (const caller of [this.requests.scope.known, stays?.caller]) caller?.endedAll(indexTerm(name));
    return ended;
  }

  /**
   * Ends every session of the application that was created or signed in to until now: after a leak, for instance.
   * Within two seconds, no instance loads one of them, and the guards of the library refuse requests that had loaded
   * one more than a second before. What they had let in is closed some seconds later. Their deleted events follow,
   * recorded in the background.
   * @throws SessionStoreError when the store failed
   */
  async endEverySession(): Promise<void> {
    await this.#repository.endEverySession();
  }

  get #repository(): SessionRepository {
    return this.requests.parts.repository;
  }

  get #indexed(): IndexedSessionRepository {
    const repository = this.#repository;
    if (repository instanceof IndexedSessionRepository) return repository;
    throw new TypeError('The store of the sessions has no indexes: its repository must be an IndexedSessionRepository');
  }
}

/** The response depends on the session, also when there is none. */
function ofHttpRequest(held: RequestSession): Session | null {
  held.use();
  return held.isUnavailable || isStarted(held.existing) ? held.session : null;
}

function isStarted(session: TrackedSession | undefined): boolean {
  return session !== undefined && (!session.isNew || session.isSet);
}

function trackedOf(session: ReadonlySession | string | undefined): TrackedSession | undefined {
  if (session === undefined || typeof session === 'string') return undefined;
  assertObject('`except`', session);
  assertString('The id of `except`', session.id);
  const shown = shownBy(session);
  return shown instanceof TrackedSession ? shown : undefined;
}

/** The store knows a session that is rotated by its old id until the save. */
function idsOf(session: ReadonlySession | string | undefined, { storedId }: Partial<TrackedSession> = {}): string[] {
  if (session === undefined) return [];
  const id = typeof session === 'string' ? session : session.id;
  return storedId === undefined || storedId === id ? [id] : [id, storedId];
}
