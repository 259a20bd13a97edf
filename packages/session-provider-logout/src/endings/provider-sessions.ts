import {
  IndexedSessionRepository,
  PRINCIPAL_NAME_INDEX_NAME,
  type ProviderClaims,
  type Session,
  type SessionRepository,
  SessionStoreError,
} from '@nest-session/core';
import {
  findPartly,
  forgetSignIn,
  marksOf,
  PRINCIPAL_ATTRIBUTE,
  PROVIDER_ATTRIBUTE,
  providerHash,
  type ProviderLogin,
  providerLoginIn,
  SID_INDEX,
  type StoreMarks,
  SUB_INDEX,
  TrackedSession,
} from '@nest-session/core/internal';
import type { ProviderAction } from '../configuration/provider-logout.options.js';
import type { ProviderEventSession } from '../events/provider-event.js';
import { ProviderSessionEndedError } from '../provider-session-ended.error.js';
import { RefusedTokenError } from '../tokens/refused-token.error.js';
import { TOLERANCE } from '../tokens/token-verifier.js';

/** Whom a provider means: a session at the provider, a user, or a session of a user. */
export interface ProviderTarget {
  readonly iss: string;
  readonly sub?: string | undefined;
  readonly sid?: string | undefined;
  /** In seconds: who signs in at the provider later is not meant, unless it is by the same `sid`. */
  readonly until: number;
}

export type SessionAction = Exclude<ProviderAction, 'none'>;

interface FoundSession extends ProviderEventSession {
  readonly login: ProviderLogin | undefined;
  /** In seconds. */
  readonly signedInAt: number;
}

interface Listing {
  readonly index: string;
  readonly value: string;
}

// Milliseconds: how old claims may be at the sign-in, and longer than any request that signs in.
const OLDEST_CLAIMS = 60 * 60_000;
const MARKED_FOR = OLDEST_CLAIMS + 15 * 60_000;
// OpenID allows 255 characters for a `sub`. An attribute is not the place for much more.
const LONGEST = 512;
const AT_ONCE = 100;
/** How often sessions are looked for that were rotated in the meantime. */
const MOST_PASSES = 5;

/** The sessions of a store by their logins at identity providers. */
export class ProviderSessions {
  constructor(
    private readonly repository: IndexedSessionRepository,
    private readonly marks: StoreMarks,
  ) {}

  /** Undefined for a store that lacks what this needs. */
  static in(repository: SessionRepository): ProviderSessions | undefined {
    const marks = marksOf(repository);
    return marks && repository instanceof IndexedSessionRepository
      ? new ProviderSessions(repository, marks)
      : undefined;
  }

  /**
   * Ends what a target means, or lets it sign in again, and refuses sign-ins under way that it means. When it fails,
   * some may have ended: the same call does the rest.
   * @throws RefusedTokenError before anything ends, for a `sid` of another `sub`; SessionStoreError
   */
  async apply(target: ProviderTarget, action: SessionAction): Promise<ProviderEventSession[]> {
    // First: a sign-in that does not see the mark is stored already, and found.
    if (action === 'end') await this.#mark(target);
    const { iss, sub, sid, until } = target;
    const isBefore = ({ login }: FoundSession) => (login?.iat ?? 0) <= until;
    const ofUser = sub === undefined ? undefined : { index: SUB_INDEX, value: providerHash(iss, sub) };
    if (sid === undefined) return ofUser ? this.#each(ofUser, action, isBefore) : [];
    let isKnown = false;
    let isOfOthers = false;
    const ofSession = { index: SID_INDEX, value: providerHash(iss, sid) };
    const ended = await this.#each(ofSession, action, ({ login }) => {
      // Who names a user otherwise for each audience has several of one session.
      const isMeant = sub === undefined || login?.sub === sub;
      if (isMeant) isKnown = true;
      else isOfOthers = true;
      return isMeant;
    });
    if (isOfOthers && !isKnown) throw new RefusedTokenError('mixed', iss);
    if (isKnown || !ofUser) return ended;
    // Their sign-ins got none.
    return this.#each(ofUser, action, (each) => each.login?.sid === undefined && isBefore(each));
  }

  /** The same for the sessions of a principal that was signed in `until` then, in seconds by whatever clock. */
  async applyTo(principal: string, until: number, action: SessionAction): Promise<ProviderEventSession[]> {
    const later = new Set<string>();
    const isBefore = ({ id, login, signedInAt }: FoundSession) => {
      const isMeant = (login?.iat ?? signedInAt) <= until + TOLERANCE;
      if (!isMeant) later.add(id);
      return isMeant;
    };
    if (action === 'end') await this.marks.leave(principalMark(principal), until, MARKED_FOR);
    const found = await this.#each({ index: PRINCIPAL_NAME_INDEX_NAME, value: principal }, action, isBefore);
    // Also what signs in by a request that has begun.
    if (action === 'end') await this.repository.deleteByIndex(PRINCIPAL_NAME_INDEX_NAME, principal, [...later]);
    return found;
  }

  /**
   * What a session keeps of a login.
   * @throws TypeError for claims that no logout would ever name; ProviderSessionEndedError for those from before what
   *   marks remember
   */
  readClaims({ iss, sub, sid, iat = Math.floor(Date.now() / 1000) }: ProviderClaims): ProviderLogin {
    const texts: Record<string, unknown> = { iss, sub, ...(sid !== undefined && sid !== null && { sid }) };
    for (const [name, value] of Object.entries(texts)) {
      if (typeof value === 'string' && value !== '' && value.length <= LONGEST) continue;
      throw new TypeError(`Claim ${name} in \`provider\` of signIn() is a string of 1 to ${LONGEST} characters`);
    }
    if (!Number.isFinite(iat)) throw new TypeError('Claim iat in `provider` of signIn() is a number of seconds');
    if (Date.now() - iat * 1000 > OLDEST_CLAIMS) throw new ProviderSessionEndedError();
    return { ...(texts as { iss: string; sub: string; sid?: string }), iat };
  }

  /** Whether the provider has ended a login before it was stored. */
  async isOver(session: Session): Promise<boolean> {
    const login = loginOf(TrackedSession.of(session));
    if (!login) return false;
    const { iss, sub, sid, iat } = login;
    const bySession = sid === undefined ? [] : [sidMark(iss, sid), sidMark(iss, sid, sub)];
    const byUser = [subMark(iss, sub), principalMark(session.principalName!)];
    if (sid === undefined) byUser.push(withoutSidMark(iss, sub));
    const found = await this.marks.read([...bySession, ...byUser]);
    return found.some((until, i) => until !== undefined && (i < bySession.length || iat <= until));
  }

  /** Whether `remember()` was called with a token lately. */
  async knows(issuer: string, jti: string): Promise<boolean> {
    const [found] = await this.marks.read([tokenMark(issuer, jti)]);
    return found !== undefined;
  }

  /** `duration` in milliseconds. */
  remember(issuer: string, jti: string, duration: number): Promise<void> {
    return this.marks.leave(tokenMark(issuer, jti), 1, duration);
  }

  async #mark({ iss, sub, sid, until }: ProviderTarget): Promise<void> {
    const names =
      sid === undefined
        ? [subMark(iss, sub!)]
        : sub === undefined
          ? [sidMark(iss, sid)]
          : [sidMark(iss, sid, sub), withoutSidMark(iss, sub)];
    await Promise.all(names.map((name) => this.marks.leave(name, until, MARKED_FOR)));
  }

  async #each(
    listing: Listing,
    action: SessionAction,
    isMeant: (session: FoundSession) => boolean,
  ): Promise<ProviderEventSession[]> {
    const done = new Map<string, ProviderEventSession>();
    for (let pass = 1; pass <= MOST_PASSES; pass++) {
      const { sessions, hasAll, failure } = await this.#look(listing);
      const meant = sessions.filter(isMeant).filter(({ id }) => !done.has(id));
      let isDone = hasAll;
      for (let i = 0; i < meant.length; i += AT_ONCE) {
        const batch = meant.slice(i, i + AT_ONCE);
        const outcomes = await Promise.all(batch.map(({ id }) => this.#act(action, id, listing)));
        for (const [j, { id, principalName }] of batch.entries())
          if (outcomes[j] === 'done') done.set(id, { id, principalName });
        if (outcomes.includes('elsewhere')) isDone = false;
      }
      if (isDone && failure !== undefined) throw failure;
      if (isDone) return [...done.values()];
    }
    throw new SessionStoreError('The sessions of a login at an identity provider kept changing their ids');
  }

  async #act(action: SessionAction, id: string, { index, value }: Listing): Promise<'done' | 'gone' | 'elsewhere'> {
    // A deletion follows a rotation.
    if (action === 'end') return (await this.repository.deleteIfListed(id, index, value)) ? 'done' : 'gone';
    return (await forgetSignIn(this.repository, id)) === 'saved' ? 'done' : 'elsewhere';
  }

  /**
   * `hasAll`: false when one was listed whose id has changed, or that has ended, before it could be read. `failure`: of
   * a session that cannot be read here, such as for a key that is missing: the others are found.
   */
  async #look({ index, value }: Listing) {
    const ids: string[] = [];
    for await (const { id } of this.repository.listByIndex(index, value)) ids.push(id);
    const sessions: FoundSession[] = [];
    const failures: unknown[] = [];
    for (let i = 0; i < ids.length; i += AT_ONCE) {
      const batch = ids.slice(i, i + AT_ONCE);
      const read = (some: readonly string[]) => findPartly(this.repository, some, NEEDED);
      const readEach = () => Promise.all(batch.map((id) => read([id]).catch((error) => void failures.push(error))));
      const found = await read(batch).catch(async () => (await readEach()).flatMap((one) => one ?? []));
      for (const each of found) if (each) sessions.push(foundSession(TrackedSession.of(each)));
    }
    return { sessions, hasAll: sessions.length + failures.length === ids.length, failure: failures[0] };
  }
}

const NEEDED = [PROVIDER_ATTRIBUTE, PRINCIPAL_ATTRIBUTE];

function foundSession(session: TrackedSession): FoundSession {
  const { id, storedPrincipal: principalName, authenticatedAt, creationTime } = session;
  return { id, principalName, login: loginOf(session), signedInAt: (authenticatedAt ?? creationTime) / 1000 };
}

function loginOf(session: TrackedSession): ProviderLogin | undefined {
  return providerLoginIn(session.peekAttribute(PROVIDER_ATTRIBUTE));
}

const sidMark = (iss: string, sid: string, sub = '') => providerHash('sid', iss, sid, sub);
const subMark = (iss: string, sub: string) => providerHash('sub', iss, sub);
const withoutSidMark = (iss: string, sub: string) => providerHash('without-sid', iss, sub);
const principalMark = (name: string) => providerHash('principal', name);
const tokenMark = (iss: string, jti: string) => providerHash('jti', iss, jti);
