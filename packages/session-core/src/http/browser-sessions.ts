import { ConflictException, Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { SessionStateError } from '../errors/session.errors.js';
import { WarnOnce } from '../logging/warn-once.js';
import { SessionRepository, signOutById } from '../repository/session.repository.js';
import {
  AliasedSessionIdResolver,
  ALIASES,
  DEFAULT_ALIAS,
  withAlias,
} from '../resolvers/aliased-session-id.resolver.js';
import { SessionIdResolver } from '../resolvers/session-id.resolver.js';
import type { SessionToken } from '../session/session-token.js';
import type { ReadonlySession } from '../session/session.js';
import { TrackedSession } from '../session/tracked-session.js';
import { findPresented, principalOf } from './presented-sessions.js';
import { MOST_MOVED } from './request-session.loader.js';
import type { ResponseCommit } from './response-commit.js';
import { SessionExtension } from './session-extension.js';
import { endForeign, type ForeignSession, moveForeign } from './session-takeover.js';
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
    @Inject(SessionIdResolver) private readonly resolver: SessionIdResolver,
    @Inject(SESSION_OPTIONS) private readonly options: Pick<ResolvedSessionOptions, 'ids'>,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
    @Inject(SessionExtension) private readonly extension: Pick<SessionExtension, 'takeover'>,
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
    const taken = new Set([this.currentAlias, ...this.#tokens.keys()]);
    const free = ALIASES.find((alias) => !taken.has(alias));
    if (free === undefined) {
      throw new ConflictException(`A browser has ${ALIASES.length} sessions at most: end one of them first`);
    }
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
  async list(): Promise<Map<string, ReadonlySession>> {
    const presented = [...this.#tokens].map(([alias, tokens]) => ({ alias, ids: this.#idsOf(tokens) }));
    const found = await findPresented(
      this.#repository,
      presented.map(({ ids }) => ids),
    );
    const sessions = new Map<string, ReadonlySession>();
    for (const [place, { sessions: ofAlias, counts }] of found.entries()) {
      const session = ofAlias[counts];
      if (session) sessions.set(presented[place]!.alias, session);
    }
    if (!sessions.has(DEFAULT_ALIAS)) {
      const session = await this.#takeOver();
      if (session) sessions.set(DEFAULT_ALIAS, session);
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
    const ids = this.#idsOf(this.#tokens.get(alias) ?? []);
    const foreign = alias === DEFAULT_ALIAS ? this.#foreign : [];
    const wereThere = await Promise.all(foreign.map((each) => endForeign(this.#repository, each.session, each.id)));
    const ended = await Promise.all(ids.map((id) => signOutById(this.#repository, id)));
    if (foreign[0]) commit.onHeaders(() => foreign[0]!.session.expire(commit.response));
    if (ids.length > 0) commit.onHeaders(() => this.#aliased?.forget(commit.request, commit.response, alias));
    return [...wereThere, ...ended].includes(true);
  }

  async #takeOver(): Promise<ReadonlySession | undefined> {
    let first: ReadonlySession | undefined;
    for (const { session, id } of this.#foreign.slice(0, MOST_MOVED)) {
      const moved = await moveForeign(this.#repository, session, id);
      if (principalOf(moved) !== undefined) return moved!;
      first ??= moved ?? undefined;
    }
    return first;
  }

  get #foreign(): { readonly session: ForeignSession; readonly id: string }[] {
    const found = this.extension.takeover?.find(this.#commit.request) ?? [];
    return found.flatMap((session) => {
      const id = this.options.ids.find(session.token);
      return id === undefined ? [] : [{ session, id }];
    });
  }

  // Not injected, because the module of the store may be constructed later.
  get #repository(): SessionRepository {
    return this.moduleRef.get<SessionRepository>(SessionRepository, { strict: false });
  }

  get #aliased(): AliasedSessionIdResolver | undefined {
    return this.resolver instanceof AliasedSessionIdResolver ? this.resolver : undefined;
  }

  get #commit(): ResponseCommit {
    const { commit } = this.scope;
    commit.session.use();
    return commit;
  }

  get #tokens(): ReadonlyMap<string, readonly SessionToken[]> {
    const { request } = this.#commit;
    const own = this.#aliased?.resolveAll(request) ?? new Map([[DEFAULT_ALIAS, this.resolver.resolve(request)]]);
    const foreign = this.#foreign.map(({ session }) => session.token);
    if (foreign.length === 0) return own;
    return new Map([...own, [DEFAULT_ALIAS, [...(own.get(DEFAULT_ALIAS) ?? []), ...foreign]]]);
  }

  #idsOf(tokens: readonly SessionToken[]): string[] {
    return tokens.map((token) => this.options.ids.find(token)).filter((id) => id !== undefined);
  }
}

const ENDED_LATE =
  'BrowserSessions.end() ended a session after the headers were sent: the browser keeps a cookie that opens nothing, ' +
  'and the alias counts as taken. Call end() before the first byte';
