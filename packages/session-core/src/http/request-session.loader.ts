import type { IncomingMessage } from 'node:http';
import { ConflictException } from '@nestjs/common';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { markRefusal, refusalBody } from '../errors/refusals.js';
import { WarnOnce } from '../logging/warn-once.js';
import { signOutById } from '../repository/session.repository.js';
import { AliasedSessionIdResolver, DEFAULT_ALIAS } from '../resolvers/aliased-session-id.resolver.js';
import { MOST_TOKENS, type TokenRefusalListener } from '../resolvers/session-id.resolver.js';
import type { TouchOutcome } from '../session/session-change.js';
import type { SessionEnd } from '../session/session-response.js';
import type { SessionToken } from '../session/session-token.js';
import type { Session } from '../session/session.js';
import { TrackedSession } from '../session/tracked-session.js';
import {
  findPresented,
  LOADED_UNSEEN,
  MOST_PRESENTED,
  type PresentedSessions,
  principalOf,
} from './presented-sessions.js';
import type { FoundSession } from './request-session.js';
import type { ResponseCommitParts } from './response-commit.js';
import { endForeign, type ForeignSession, moveForeign } from './session-takeover.js';
import { cookieLifetimeOf, isCookieDue, isRolling, isTouchDue, SessionTouch, touchDueIn } from './session-touch.js';

export interface PresentedToken {
  readonly token: SessionToken;
  readonly id: string;
  readonly foreign?: ForeignSession | undefined;
}

type Options = Pick<ResolvedSessionOptions, 'timeout' | 'touchInterval' | 'ids' | 'security' | 'securityEvents'>;
type Parts = Pick<ResponseCommitParts, 'repository' | 'resolver' | 'extension' | 'deviceOf' | 'devices' | 'tokens'>;

/** A client must not make a request ask for more sessions of another library. */
const MOST_MOVED = 5;

export class RequestSessionLoader {
  readonly #log = new WarnOnce();
  readonly #reportRefusal: TokenRefusalListener;

  constructor(
    private readonly parts: Parts,
    private readonly options: Options,
  ) {
    // Made once: every request passes it on.
    this.#reportRefusal = (request, reason) => {
      const kind = reason === 'malformed' ? 'malformed-token' : 'badly-signed-token';
      return options.securityEvents.report(kind, { request, reason });
    };
  }

  /** Undefined without a well-formed token. Never rejects: a failed load matters only when the session is used. */
  load(request: IncomingMessage): Promise<FoundSession> | undefined {
    const presented = this.#presentedBy(request, this.#reportRefusal);
    const [first] = presented;
    return first && this.#find(request, presented, first);
  }

  presentedIds(request: IncomingMessage): string[] {
    return this.#presentedBy(request).map(({ id }) => id);
  }

  /** Loaded once for several messages: each has a session of its own, and one of them touches it. Never rejects. */
  async loadAgain(request: IncomingMessage, id: string, messages: number): Promise<FoundSession[]> {
    const presentedIds = [id];
    const askedAt = performance.now();
    try {
      const found = await this.parts.repository.findByIds(Array.from({ length: messages }, () => id));
      const [first] = found;
      const session = first && TrackedSession.of(first);
      const touch =
        session && isTouchDue(session, this.options)
          ? SessionTouch.of(this.parts.repository, session, false)
          : undefined;
      // A sign-out means the others as well.
      const others = this.#presentedBy(request).filter((each) => each.id !== id);
      const companions = [() => Promise.all(others.map((each) => this.#endOf(each)()))];
      const { device, isWithheld } = this.#proofOf(request, session);
      if (isWithheld) return found.map((withheld) => ({ askedAt, withheld, device, companions }));
      return found.map((loaded) => ({
        presentedIds,
        askedAt,
        loaded,
        companions,
        device,
        // A message that does not renew the session cancels its own only.
        touch: touch && new SessionTouch(async () => (await touch.send()) ?? 'failed'),
      }));
    } catch (loadError) {
      return Array.from({ length: messages }, () => ({ presentedIds, loadError }));
    }
  }

  #presentedBy(request: IncomingMessage, onRefused?: TokenRefusalListener): PresentedToken[] {
    const { resolver, extension } = this.parts;
    const presented = this.#known(resolver.resolve(request, onRefused).slice(0, MOST_TOKENS));
    // Other libraries keep no session but the one of a browser that has only one.
    const isOfOne = !(resolver instanceof AliasedSessionIdResolver) || resolver.aliasOf(request) === DEFAULT_ALIAS;
    if (!extension.takeover || !isOfOne) return presented;
    // Last: a session that is already kept here counts.
    return [...presented, ...this.#foreign(request)].slice(0, MOST_PRESENTED);
  }

  /** What the browser presents, by alias; without the option `multipleSessions`, under the first. */
  presentedByAlias(request: IncomingMessage): Map<string, readonly PresentedToken[]> {
    const { resolver } = this.parts;
    const tokens =
      resolver instanceof AliasedSessionIdResolver
        ? resolver.resolveAll(request)
        : new Map([[DEFAULT_ALIAS, resolver.resolve(request)]]);
    const presented = new Map([...tokens].map(([alias, each]) => [alias, this.#known(each)]));
    const foreign = this.#foreign(request);
    if (foreign.length > 0) presented.set(DEFAULT_ALIAS, [...(presented.get(DEFAULT_ALIAS) ?? []), ...foreign]);
    return presented;
  }

  #known(tokens: readonly SessionToken[]): PresentedToken[] {
    const presented: PresentedToken[] = [];
    for (const token of tokens) {
      const id = this.options.ids.find(token);
      if (id !== undefined) presented.push({ token, id });
    }
    return presented;
  }

  #foreign(request: IncomingMessage): PresentedToken[] {
    const found = this.parts.extension.takeover?.find(request) ?? [];
    return found.flatMap((each) => {
      const id = this.options.ids.find(each.token);
      const foreign: ForeignSession = { ...each, move: (to) => each.move(to, this.parts.deviceOf?.(request)) };
      return id === undefined ? [] : [{ token: each.token, id, foreign }];
    });
  }

  async #find(request: IncomingMessage, all: readonly PresentedToken[], first: PresentedToken): Promise<FoundSession> {
    const presentedIds = all.map(({ id }) => id);
    const askedAt = performance.now();
    try {
      const found = all.length > 1 ? await this.#findSeveral(request, presentedIds) : await this.#findOne(presentedIds);
      const { sessions, counts } = found;
      // Each is a guess of its own.
      if (sessions.includes(null)) all.forEach((each, i) => sessions[i] === null && this.#reportUnknown(request, each));
      const known = all[counts];
      const isKept = known ? !known.foreign : !all.at(-1)?.foreign;
      const { presented: counting, loaded } = isKept
        ? { presented: known ?? first, loaded: sessions[counts] ?? null }
        : await this.#takeOver(request, all, found);
      const { token, id, foreign } = counting;
      const presented = loaded ? token : first.token;
      const { tokens } = this.parts;
      const { device, isWithheld } = this.#proofOf(request, loaded);
      if (loaded) this.parts.devices?.count(TrackedSession.of(loaded), device);
      if (isWithheld) {
        return { presented, askedAt, withheld: loaded, device, companions: this.#endsOf(all, sessions, '') };
      }
      const turn = loaded ? tokens?.check(request, TrackedSession.of(loaded), token) : undefined;
      const touch = loaded ? this.#touchOf(TrackedSession.of(loaded), presented, foreign) : undefined;
      const companions = all.length > 1 ? this.#endsOf(all, sessions, id) : undefined;
      return { presented, presentedIds, askedAt, loaded, companions, touch, foreign, device, turn };
    } catch (loadError) {
      return { presented: first.token, presentedIds, loadError };
    }
  }

  /** What a request shows of the browser of a session, and whether that is too little to open it. */
  #proofOf(request: IncomingMessage, session: Session | null | undefined) {
    const device = session ? this.parts.devices?.check(request, TrackedSession.of(session)) : undefined;
    return { device, isWithheld: device?.reason !== undefined && this.parts.devices?.options.mode === 'enforce' };
  }

  /** Most requests present one token. */
  async #findOne(ids: readonly string[]): Promise<PresentedSessions> {
    const sessions = await this.parts.repository.findByIds(ids);
    return { sessions, counts: sessions[0] ? 0 : -1 };
  }

  async #findSeveral(request: IncomingMessage, ids: readonly string[]): Promise<PresentedSessions> {
    const [found] = await findPresented(this.parts.repository, [ids]);
    const { sessions, counts } = this.#provenFirst(request, found!);
    this.#checkPrincipals(request, sessions, sessions[counts] ?? null);
    return { sessions, counts };
  }

  /** @throws ConflictException for sessions of two principals, with `security: 'strict'` */
  #checkPrincipals(request: IncomingMessage, sessions: readonly (Session | null)[], counting: Session | null): void {
    const principals = new Set(sessions.map(principalOf));
    principals.delete(undefined);
    if (principals.size < 2) return;
    const { id: sessionId, principalName } = counting ?? {};
    const isHeard = this.options.securityEvents.report('two-principals', { request, sessionId, principalName });
    const isRefused = this.options.security === 'strict';
    if (!isHeard) this.#log.warn('two principals', isRefused ? REFUSED_PRINCIPALS : TWO_PRINCIPALS);
    if (isRefused) throw markRefusal(new ConflictException(refusalBody('two-principals')));
  }

  /** A session that may be opened counts before one whose proof is missing: somebody may have planted that. */
  #provenFirst(request: IncomingMessage, found: PresentedSessions): PresentedSessions {
    const { sessions, counts } = found;
    const opens = (each: Session | null) => each && this.parts.devices?.opens(request, TrackedSession.of(each));
    // Of more, only one is known whole.
    if (!this.parts.devices || sessions.length > LOADED_UNSEEN || opens(sessions[counts] ?? null)) return found;
    const other = sessions.findIndex((each) => principalOf(each) !== undefined && opens(each));
    return other < 0 ? found : { sessions, counts: other };
  }

  #reportUnknown(request: IncomingMessage, presented: PresentedToken): void {
    // What stands for a session of another library is not kept here yet.
    if (!presented.foreign) {
      this.options.securityEvents.report('unknown-token', { request, sessionId: presented.id });
    }
  }

  #endsOf(all: readonly PresentedToken[], sessions: readonly (Session | null)[], counts: string): SessionEnd[] {
    const others = all.filter(({ id, foreign }, i) => id !== counts && (sessions[i] !== null || foreign));
    return others.map((other) => this.#endOf(other));
  }

  /** It lives as long as the response. A function of the method above would keep all of its sessions in memory. */
  #endOf(presented: PresentedToken): SessionEnd {
    return () => this.end(presented);
  }

  async end({ id, foreign }: PresentedToken): Promise<boolean> {
    const wasForeign = foreign !== undefined && (await endForeign(this.parts.repository, foreign, id));
    return (await signOutById(this.parts.repository, id)) || wasForeign;
  }

  async #takeOver(request: IncomingMessage, all: readonly PresentedToken[], { sessions, counts }: PresentedSessions) {
    const isOfPrincipal = principalOf(sessions[counts] ?? null) !== undefined;
    // Whose a session is shows once it is moved.
    const isStrict = this.options.security === 'strict';
    const candidates = all.filter(({ foreign }, i) => foreign && (isStrict || !isOfPrincipal || i === counts));
    const existing = (each: PresentedToken) => sessions[all.indexOf(each)] ?? null;
    const moved: Session[] = [];
    const found = await this.move(candidates, existing, isStrict ? moved : undefined);
    this.#checkPrincipals(request, moved, found?.loaded ?? null);
    return found ?? { presented: candidates[0]!, loaded: null };
  }

  /**
   * Moves sessions of another library until one is that of a principal, or all of them where they are to be listed in
   * `moved`. The first of a principal counts, or else the first that is there.
   */
  async move(
    candidates: readonly PresentedToken[],
    existing: (of: PresentedToken) => Session | null = () => null,
    moved?: Session[],
  ) {
    let found: { readonly presented: PresentedToken; readonly loaded: Session } | undefined;
    for (const presented of candidates.slice(0, MOST_MOVED)) {
      const { foreign, id } = presented;
      const loaded = await moveForeign(this.parts.repository, foreign!, id, existing(presented));
      if (!loaded) continue;
      const isOfPrincipal = principalOf(loaded) !== undefined;
      if (!found || (isOfPrincipal && principalOf(found.loaded) === undefined)) found = { presented, loaded };
      moved?.push(loaded);
      if (isOfPrincipal && !moved) break;
    }
    return found;
  }

  async #lookAgain({ id }: Session): Promise<TouchOutcome | 'failed'> {
    try {
      return (await this.parts.repository.findById(id)) ? 'touched' : 'gone';
    } catch {
      return 'failed';
    }
  }

  #touchOf(session: TrackedSession, presented: SessionToken, foreign?: ForeignSession): SessionTouch | undefined {
    // Its client does not have the token yet. It is no access: the session keeps the end that it had elsewhere.
    if (foreign) return new SessionTouch(() => this.#lookAgain(session), true, true);
    const dueIn = touchDueIn(session, this.options);
    if (dueIn !== undefined && dueIn > 0) {
      // Neither do its saves have to renew it.
      session.keepIdleFor(dueIn);
      return undefined;
    }
    const sendsToken = isRolling(this.parts.resolver, { presented, ...cookieLifetimeOf(session) });
    const isDue = dueIn !== undefined || (sendsToken && isCookieDue(session, this.options.touchInterval));
    return isDue ? SessionTouch.of(this.parts.repository, session, sendsToken) : undefined;
  }
}

const TWO_PRINCIPALS =
  'A request presented live sessions of two principals, and the first counted: a cookie may have been planted in the ' +
  "browser of a user. Option `security: 'strict'` refuses such requests";

const REFUSED_PRINCIPALS =
  'A request presented live sessions of two principals, and gets a 409 response if it uses its session: a cookie may ' +
  'have been planted in the browser of a user, who has to delete the cookies of this site';

export function isUpgrade(request: IncomingMessage): boolean {
  return (request as { readonly upgrade?: boolean }).upgrade === true;
}
