import { isDeepStrictEqual } from 'node:util';
import type { IncomingMessage } from 'node:http';
import { SessionStateError } from '@nest-session/core';
import type { RequestSession, TrackedSession } from '@nest-session/core/internal';
import { isOwn, type Update } from '../bag/session-bag.js';
import {
  nameIfAny,
  PASSPORT_USER,
  principalNameOf,
  type PrincipalRule,
  type SessionProperties,
  userIn,
} from './principal-rule.js';
import { type PassportKeys, type PassportLogin, passportLoginOf } from './passport-logins.js';
import { warnOnce } from '../express-session.logger.js';

/** Why a user of Passport is nobody's principal. */
export type NoPrincipalReason = 'no-id' | 'not-by-passport';

/** Called for a session of a request whose user of Passport is not its principal. */
export type NoPrincipalReport = (reason: NoPrincipalReason, request: IncomingMessage, sessionId: string) => void;

/** Keeps the principal of a session in step with its properties, by the rule. */
export class PrincipalRecorder {
  readonly #authenticatedAt: number | undefined;
  #settled: PassportLogin | undefined;

  constructor(
    private readonly session: TrackedSession,
    private readonly request: IncomingMessage,
    private readonly rule: PrincipalRule | undefined,
    private readonly report: NoPrincipalReport,
  ) {
    this.#authenticatedAt = session.authenticatedAt;
  }

  /**
   * Sets or removes the principal.
   * @throws TypeError when the user has no name; SessionStateError when `signIn()` has signed in somebody else
   */
  record(properties: object): void {
    const { session, rule } = this;
    if (!rule) return;
    if (rule.passportKeys) return this.#follow(rule.passportKeys);
    const name = rule.nameIn(this.#asStored(properties));
    if (name === session.principalName) return;
    // The client would be told that it is signed in, and be nobody.
    if (session.signsIn) throw new SessionStateError(SIGN_IN_NOT_FOUND);
    session.setPrincipal(name);
  }

  /**
   * Wraps an update of an attribute, so that it throws if it would change the principal: the update stores only the
   * attribute.
   */
  keeping(name: string, update: Update, properties: object): Update {
    const { rule, session } = this;
    if (!rule?.mayRead(name)) return update;
    return (current) => {
      const others = { ...this.#asStored(properties) };
      const nameWith = (value: unknown) =>
        rule.passportKeys
          ? nameIfAny(userIn(session.asStored(name, value)))
          : rule.nameIn({ ...others, [name]: session.asStored(name, value) });
      // Ask before the update, because the update may change the object in place.
      const before = nameWith(current);
      const value = update(current);
      if (nameWith(value) === before) return value;
      throw new TypeError(
        `req.session.updateAttribute(${JSON.stringify(name)}) would change the principal of the session: call ` +
          'req.session.regenerate(), and then assign the property instead',
      );
    };
  }

  /**
   * Takes over whom Passport signs in or out. What other code writes where Passport keeps its users signs in nobody: it
   * may be what a client has sent.
   */
  #follow(keys: PassportKeys): void {
    const { session } = this;
    const login = passportLoginOf(this.request);
    if (login && login !== this.#settled && this.#holds(login)) {
      const name = principalNameOf(session.asStored(login.key, login.user), PASSPORT_USER);
      this.#settled = login;
      if (name === undefined) this.#tell('no-id');
      // A sign-in of the application since then has decided it.
      else if (name !== session.principalName && !this.#hasSignedIn) session.setPrincipal(name);
      return;
    }
    const name = session.principalName;
    for (const key of keys) {
      const [before, user] = [userIn(session.peekStored(key)), this.#user(key)];
      if (isDeepStrictEqual(user, before)) continue;
      const next = nameIfAny(user);
      if (user === undefined) this.#signOut(keys);
      else if (next === undefined ? before === undefined : next !== name) this.#refuse(key, keys);
    }
  }

  /** What other code has written reaches Passport neither: it would take that user for signed in. */
  #refuse(key: string, { isInUse }: PassportKeys): void {
    this.#tell('not-by-passport');
    if (isInUse) this.session.assignAttribute(key, this.session.peekStored(key));
  }

  /** The user of Passport is gone, and with it the principal: unless somebody else is signed in. */
  #signOut(keys: ReadonlySet<string>): void {
    const { principalName } = this.session;
    const isAnothers = [...keys].some((key) => nameIfAny(this.#user(key)) === principalName);
    if (principalName !== undefined && !isAnothers && !this.#hasSignedIn) this.session.setPrincipal(undefined);
  }

  #tell(reason: NoPrincipalReason): void {
    this.report(reason, this.request, this.session.id);
  }

  /** Whether the session has the user that Passport has just kept. */
  #holds({ key, user }: PassportLogin): boolean {
    const kept = this.session.asStored(key, user);
    const property = this.session.asStored(key, this.session.peekAttribute(key));
    // @fastify/passport keeps the user itself.
    return [property, userIn(property)].some(
      (value) => isDeepStrictEqual(value, kept) || (nameIfAny(value) ?? '') === nameIfAny(kept),
    );
  }

  #user(key: string): unknown {
    return userIn(this.session.asStored(key, this.session.peekAttribute(key)));
  }

  /** The properties as the next request reads them, so that a function finds the same in both. */
  #asStored(properties: object): SessionProperties {
    const { session } = this;
    return new Proxy(properties, {
      get: (bag, name) => {
        const value: unknown = Reflect.get(bag, name);
        return typeof name === 'string' && session.attributeNames.includes(name)
          ? session.asStored(name, value)
          : value;
      },
    }) as SessionProperties;
  }

  get #hasSignedIn(): boolean {
    const { authenticatedAt } = this.session;
    return authenticatedAt !== undefined && authenticatedAt !== this.#authenticatedAt;
  }
}

const SIGN_IN_NOT_FOUND =
  'Nobody was signed in, and nothing was saved, because the option `principal` of ExpressSessionModule.forRoot() does not ' +
  'find the name that signIn(name) got: after the call, and before the save, assign the property that the function reads, ' +
  'or set `principal: false` and let signIn() alone decide';

/**
 * Gives sessions that were stored before the option `principal` was a function, or was another one, the principal that
 * it finds: otherwise `Sessions.endAll()` misses them until the next change. Looks only where a request renews its
 * session, so at most once per `touchInterval`.
 */
export class PrincipalAdoption {
  /** @param isAdmitted whether a session can always get a principal */
  constructor(
    private readonly rule: PrincipalRule | undefined,
    private readonly isAdmitted: boolean,
  ) {}

  /** Before the response. Never throws: what is wrong with the session, its next save says. */
  adopt({ existing, touch }: RequestSession): void {
    const { rule } = this;
    if (!rule || rule.passportKeys || !touch?.isDue || !existing || !isUnchanged(existing)) return;
    const name = nameIn(rule, existing);
    if (name === undefined || name === existing.principalName) return;
    warnOnce(this.isAdmitted ? ADOPTED : NOT_ADOPTED);
    if (!this.isAdmitted) return;
    try {
      if (existing.principalName === undefined) existing.adoptPrincipal(name);
      else existing.setPrincipal(name);
    } catch {
      // It holds as much as it may, or cannot get another token any more: nothing has changed.
    }
  }
}

/** A save of changes asks the rule by itself. */
function isUnchanged(session: TrackedSession): boolean {
  return !session.isNew && !session.isGone && !session.isOver && !session.isSet && !session.response?.headersSent;
}

function nameIn(rule: PrincipalRule, session: TrackedSession): string | undefined {
  const properties = {};
  for (const name of session.attributeNames.filter(isOwn)) {
    const get = () => session.peekAttribute(name);
    Object.defineProperty(properties, name, { get, enumerable: true, configurable: true });
  }
  try {
    return rule.nameIn(properties as SessionProperties);
  } catch {
    return undefined;
  }
}

const FOUND =
  'The option `principal` of ExpressSessionModule.forRoot() finds another principal in stored sessions than they were ' +
  'stored with, or the first one. ';

const ADOPTED =
  `${FOUND}A session gets it when a request renews it. Until then, Sessions.endAll(name) does not reach it. This is ` +
  'logged once';

const NOT_ADOPTED =
  `${FOUND}Sessions.endAll(name) does not reach them until their next change, because \`maxSessions\` may refuse them the ` +
  'principal. This is logged once';
