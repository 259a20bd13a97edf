import type { IncomingMessage } from 'node:http';
import { ConflictException, Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { SessionRepository } from '../repository/session.repository.js';
import { SessionStateError } from '../session.errors.js';
import { SESSION_OPTIONS } from '../session.module-definition.js';
import type { ResolvedSessionOptions } from '../session.options.js';
import type { ReadonlySession } from '../session/session.js';
import type { SessionToken } from '../session/session-key.js';
import { AliasedSessionIdResolver } from './resolvers/aliased-session-id.resolver.js';
import { OnceLog } from './once.log.js';
import { SessionContext } from './session-context.js';
import { ALIASES, withAlias } from './resolvers/session.alias.js';
import { SessionIdResolver } from './resolvers/session-id.resolver.js';
import type { SessionRequest } from './session-request.js';

/**
 * The sessions of one browser, with the option `multipleSessions`. Each has an alias, which stands in URLs: a tab whose
 * links are made by `link()` stays in its session, and a link with another alias switches to that one. To be used on
 * behalf of a request, as `SessionContext`.
 * @throws SessionStateError from every member where there is no request, or without the option
 */
@Injectable()
export class SessionManager {
  readonly #log = new OnceLog();

  constructor(
    @Inject(SessionContext) private readonly context: SessionContext,
    @Inject(SessionIdResolver) private readonly resolver: SessionIdResolver,
    @Inject(SESSION_OPTIONS) private readonly options: Pick<ResolvedSessionOptions, 'ids'>,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
  ) {}

  /** The alias of the session of this request. */
  get currentAlias(): string {
    return this.#aliased.aliasOf(this.#request);
  }

  /**
   * An alias for which this browser has no cookie: who follows a link with it has a new session there. That of a session
   * that is over, which the browser has not been told to forget, counts as well: the store is not asked.
   * @throws ConflictException, 409, when it has cookies for all of them
   */
  get newAlias(): string {
    const taken = new Set([this.currentAlias, ...this.#aliased.resolveAll(this.#request).keys()]);
    const free = ALIASES.find((alias) => !taken.has(alias));
    if (free === undefined) {
      throw new ConflictException(`A browser has ${ALIASES.length} sessions at most: end one of them first`);
    }
    return free;
  }

  /** The URL in the session of this request, or in that of another alias. */
  link(url: string, alias = this.currentAlias): string {
    assertAlias(alias);
    return withAlias(url, alias);
  }

  /** The stored sessions of this browser that are alive, by alias; one round trip. */
  async list(): Promise<Map<string, ReadonlySession>> {
    const presented = [...this.#aliased.resolveAll(this.#request)].flatMap(([alias, tokens]) =>
      this.#idsOf(tokens).map((id) => ({ alias, id })),
    );
    const found = await this.repository.findByIds(presented.map(({ id }) => id));
    const sessions = new Map<string, ReadonlySession>();
    for (const [index, { alias }] of presented.entries()) {
      const session = found[index];
      // Of several cookies of a name the first that opens a session counts.
      if (session && !sessions.has(alias)) sessions.set(alias, session);
    }
    return sessions;
  }

  /** Ends the session of an alias, and has the browser forget it. False when there was none to end. */
  async end(alias: string): Promise<boolean> {
    const isEnded = alias === this.currentAlias ? await this.#endCurrent() : await this.#endOther(alias);
    if (isEnded && this.#sessionRequest.isHeadSent) this.#log.warn('ended late', ENDED_LATE);
    return isEnded;
  }

  async #endCurrent(): Promise<boolean> {
    const { session, isSessionDeleted } = this.#sessionRequest;
    if (isSessionDeleted) return false;
    session.invalidate();
    return (await session.save()) === 'saved' && !session.isNew;
  }

  async #endOther(alias: string): Promise<boolean> {
    const resolver = this.#aliased;
    const sessionRequest = this.#sessionRequest;
    const { request } = sessionRequest;
    const ids = this.#idsOf(resolver.resolveAll(request).get(alias) ?? []);
    const ended = await Promise.all(ids.map((id) => this.repository.deleteById(id)));
    if (ids.length > 0) sessionRequest.onHead((response) => resolver.forget(request, response, alias));
    return ended.includes(true);
  }

  // Not injected: the module of the store may be constructed later.
  private get repository(): SessionRepository {
    return this.moduleRef.get<SessionRepository>(SessionRepository, { strict: false });
  }

  get #aliased(): AliasedSessionIdResolver {
    if (this.resolver instanceof AliasedSessionIdResolver) return this.resolver;
    throw new SessionStateError('A browser has one session: set `multipleSessions: true` in SessionModule.forRoot()');
  }

  get #sessionRequest(): SessionRequest {
    const { request } = this.context;
    request.use();
    return request;
  }

  get #request(): IncomingMessage {
    return this.#sessionRequest.request;
  }

  #idsOf(tokens: readonly SessionToken[]): string[] {
    return tokens.map((token) => this.options.ids.find(token)).filter((id) => id !== undefined);
  }
}

function assertAlias(alias: string): void {
  if (!ALIASES.includes(alias)) throw new RangeError(`An alias is a number from 0 to ${ALIASES.length - 1}, as text`);
}

const ENDED_LATE =
  'SessionManager.end() has ended a session after the head of the response had been sent: the browser keeps its cookie, ' +
  'which opens nothing, and its alias counts as taken. Call it before the first byte';
