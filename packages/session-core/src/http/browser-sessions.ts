import { ConflictException, Inject, Injectable } from '@nestjs/common';
import { markRefusal, refusalBody } from '../errors/refusals.js';
import { SessionStateError } from '../errors/session.errors.js';
import { WarnOnce } from '../logging/warn-once.js';
import {
  AliasedSessionIdResolver,
  ALIASES,
  DEFAULT_ALIAS,
  withAlias,
} from '../resolvers/aliased-session-id.resolver.js';
import type { ReadonlySession, Session } from '../session/session.js';
import { TrackedSession } from '../session/tracked-session.js';
import { findPresented } from './presented-sessions.js';
import type { PresentedToken } from './request-session.loader.js';
import { RequestSessions } from './request-sessions.js';
import type { ResponseCommit } from './response-commit.js';
import { SessionScope } from './session.scope.js';

/**
 * The sessions of the browser that sent the request. With the option `multipleSessions` it has several, each under an
 * alias in the URL: `link()` keeps a tab in its session. Without the option there is one, under the alias `'0'`.
 * @throws SessionStateError from every member where there is no request
 */
@Injectable()
export class BrowserSessions {
  readonly #log = new WarnOnce();

  /** @internal Inject it. */
  constructor(
    @Inject(SessionScope) private readonly scope: SessionScope,
    @Inject(RequestSessions) private readonly requests: RequestSessions,
  ) {}

  /** The alias of the session of this request. */
  get currentAlias(): string {
    const { request } = this.#commit;
    return this.#aliased?.aliasOf(request) ?? DEFAULT_ALIAS;
  }

  /**
   * An alias for which this browser has no cookie, not even of an ended session: a link with it leads to a new session.
   * @throws ConflictException, 409, when there is none; SessionStateError without the option `multipleSessions`
   */
  get newAlias(): string {
    if (!this.#aliased) {
      throw new SessionStateError('A browser has one session: set `multipleSessions: true` in SessionModule.forRoot()');
    }
    const taken = new Set([this.currentAlias, ...this.#presented.keys()]);
    const free = ALIASES.find((alias) => !taken.has(alias));
    if (free === undefined) throw markRefusal(new ConflictException(refusalBody('too-many-aliases')));
    return free;
  }

  /**
   * The URL in the session of this request, or in the session of another alias.
   * @throws RangeError for an alias that cannot exist
   */
  link(url: string, alias = this.currentAlias): string {
    if (!ALIASES.includes(alias)) throw new RangeError(`An alias is a number from 0 to ${ALIASES.length - 1}, as text`);
    return withAlias(url, alias);
  }

  /**
   * The live, stored sessions of this browser, by alias. One round trip to the store, and a second one when the browser
   * has more than five cookies, and several for an alias. What another library keeps for it is taken over first.
   */
  async list(): Promise<Map<string, ReadonlySession & Pick<Session, 'device'>>> {
    const byAlias = this.#presented;
    const presented = [...byAlias];
    const places = presented.map(([, tokens]) => tokens.map(({ id }) => id));
    const found = await findPresented(this.requests.parts.repository, places);
    const { request, parts } = this.#commit;
    const sessions = new Map<string, Session>();
    for (const [place, { sessions: ofAlias, counts }] of found.entries()) {
      const session = ofAlias[counts];
      const [alias] = presented[place]!;
      const isOpen = session && (parts.devices?.opens(request, TrackedSession.of(session), alias) ?? true);
      if (isOpen) sessions.set(alias, session);
    }
    if (!sessions.has(DEFAULT_ALIAS)) {
      const foreign = byAlias.get(DEFAULT_ALIAS)?.filter((each) => each.foreign) ?? [];
      const moved = await this.requests.loader.move(foreign);
      if (moved?.loaded) sessions.set(DEFAULT_ALIAS, moved.loaded);
    }
    return sessions;
  }

  /** Ends the session of an alias and expires its cookie. False when there was no session to end. */
  async end(alias: string): Promise<boolean> {
    const isEnded = alias === this.currentAlias ? await this.#endCurrent() : await this.#endOther(alias);
    if (isEnded && this.#commit.headersSent) this.#log.warn('ended late', ENDED_LATE);
    return isEnded;
  }

  async #endCurrent(): Promise<boolean> {
    const current = TrackedSession.of(this.#commit.session.session);
    if (current.wasEnded) return false;
    current.signOut();
    await current.save();
    return current.wasEnded;
  }

  async #endOther(alias: string): Promise<boolean> {
    const commit = this.#commit;
    const { request, response } = commit;
    const presented = this.#presented.get(alias) ?? [];
    const ended = await Promise.all(presented.map((each) => this.requests.loader.end(each)));
    const foreign = presented.find((each) => each.foreign)?.foreign;
    if (foreign) commit.onHeaders(() => foreign.expire(response));
    if (presented.length > 0) commit.onHeaders(() => this.#aliased?.forget(request, response, alias));
    return ended.includes(true);
  }

  get #aliased(): AliasedSessionIdResolver | undefined {
    const { resolver } = this.requests.parts;
    return resolver instanceof AliasedSessionIdResolver ? resolver : undefined;
  }

  get #commit(): ResponseCommit {
    const { commit } = this.scope;
    commit.session.use();
    return commit;
  }

  get #presented(): ReadonlyMap<string, readonly PresentedToken[]> {
    return this.requests.loader.presentedByAlias(this.#commit.request);
  }
}

const ENDED_LATE =
  'BrowserSessions.end() ended a session after the headers were sent: the browser keeps a cookie that opens nothing, ' +
  'and the alias counts as taken. Call end() before the first byte';
