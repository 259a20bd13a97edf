import { isDeepStrictEqual } from 'node:util';
import type { IncomingMessage } from 'node:http';
import { type Session, SessionAttributeError, SessionStateError } from '@nest-session/core';
import { fastifyRequestOf, type RequestSession, type SessionRule, TrackedSession } from '@nest-session/core/internal';
import {
  isOwn,
  nameIfAny,
  PASSPORT_USER,
  principalNameOf,
  type PrincipalRule,
  type SessionProperties,
  userIn,
} from './principal-rule.js';
import { type PassportKeys, type PassportLogin, passportLoginOf } from './passport-logins.js';
import { warnOnce } from '../express-session.logger.js';

type Update = Parameters<SessionRule['updating']>[2];

export type NoPrincipalReason = 'no-id' | 'not-by-passport';

export type NoPrincipalReport = (reason: NoPrincipalReason, request: IncomingMessage, sessionId: string) => void;

/** Keeps the principals of all sessions in step with their properties, by the option `principal`. */
export class SessionPrincipals implements SessionRule {
  readonly #recorders = new WeakMap<TrackedSession, PrincipalRecorder>();

  /** @param isAdmitted whether a session can always get a principal */
  constructor(
    private readonly rule: PrincipalRule,
    private readonly report: NoPrincipalReport,
    private readonly isAdmitted: boolean,
  ) {}

  /**
   * Before the response. Gives a session that was stored before the option `principal` was this function the principal
   * that it finds: otherwise `Sessions.endAll()` misses it until the next change. Looks only where a request renews its
   * session, so at most once per `touchInterval`. Never throws: what is wrong with the session, its next save says.
   */
  adopt({ existing, touch }: RequestSession): void {
    if (this.rule.passportKeys || !touch?.isDue || !existing || !isUnchanged(existing)) return;
    const { storedName: name } = this.#of(existing);
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

  beforeSave(session: Session): void {
    if (session.attributeNames.length > 0) this.#of(session).record();
  }

  updating(session: Session, name: string, update: Update): Update {
    return this.rule.mayRead(name) ? this.#of(session).keeping(name, update) : update;
  }

  #of(shown: Session): PrincipalRecorder {
    const session = TrackedSession.of(shown);
    const known = this.#recorders.get(session);
    if (known) return known;
    const recorder = new PrincipalRecorder(session, this.rule, this.report);
    this.#recorders.set(session, recorder);
    return recorder;
  }
}

/** Keeps the principal of one session in step with its properties, by the rule. */
class PrincipalRecorder {
  readonly #authenticatedAt: number | undefined;
  #settled: PassportLogin | undefined;
  /** What the settled login has written: it may not be saved yet. */
  #written: { readonly key: string; readonly property: unknown } | undefined;

  constructor(
    private readonly session: TrackedSession,
    private readonly rule: PrincipalRule,
    private readonly report: NoPrincipalReport,
  ) {
    this.#authenticatedAt = session.storedAuthenticatedAt;
  }

  /** Undefined outside of a request. */
  get #request(): IncomingMessage | undefined {
    return this.session.caller?.request;
  }

  /**
   * @throws TypeError when the user has no name; SessionStateError when `signIn()` has signed in somebody else, or the
   *   client cannot be sent another id; SessionAttributeError for a user of Passport that is set outside of a request
   */
  record(): void {
    const { session, rule } = this;
    if (rule.passportKeys) return this.#follow(rule.passportKeys);
    const name = rule.nameIn(this.#asStored());
    if (name === session.principalName) return;
    // The client would be told that it is signed in, and be nobody.
    if (session.signsIn) throw new SessionStateError(SIGN_IN_NOT_FOUND);
    if (name !== undefined && session.keepsId && this.storedName === name) return this.#adopt(name);
    session.setPrincipal(name);
  }

  /** An update stores only the attribute, so one that would change the principal throws. */
  keeping(name: string, update: Update): Update {
    const { rule, session } = this;
    return (current) => {
      const others = { ...this.#asStored() };
      const whoWith = (value: unknown) =>
        rule.passportKeys
          ? this.#userOf(name, session.asStored(name, value))
          : rule.nameIn({ ...others, [name]: session.asStored(name, value) });
      // Ask before the update, because the update may change the object in place.
      const before = whoWith(current);
      const value = update(current);
      if (isDeepStrictEqual(whoWith(value), before)) return value;
      throw new TypeError(
        `req.session.updateAttribute(${JSON.stringify(name)}) would change the principal of the session: call ` +
          'req.session.regenerate(), and then assign the property instead',
      );
    };
  }

  /** Nobody signs in: the session had the principal before the option found it. The next HTTP request sees to it. */
  #adopt(name: string): void {
    const { session } = this;
    if (session.response && session.principalName === undefined) session.adoptPrincipal(name);
  }

  /** Whom the rule finds in what the store has; undefined also where it throws. */
  get storedName(): string | undefined {
    const { session, rule } = this;
    try {
      return rule.nameIn(propertiesOf(session.storedNames, (name) => session.peekStored(name)));
    } catch {
      return undefined;
    }
  }

  /**
   * Takes over whom Passport signs in or out. What other code writes where Passport keeps its users signs in nobody,
   * and does not stay there, where Passport would take it for its own: it may be what a client has sent.
   */
  #follow(keys: PassportKeys): void {
    const { session } = this;
    const request = this.#request;
    const login = request && passportLoginOf(request);
    if (login && login !== this.#settled) this.#settle(login);
    let isLeft = false;
    for (const key of keys) {
      const written = this.#written?.key === key ? this.#written.property : session.peekStored(key);
      const property = this.#property(key);
      if (isDeepStrictEqual(this.#userOf(key, property), this.#userOf(key, written))) continue;
      if (userIn(property) !== undefined) {
        this.#refuse(key, written);
        continue;
      }
      isLeft = true;
      if (this.#written?.key === key) this.#written = undefined;
      // To @fastify/passport, an object is a user, even an empty one.
      if (this.#isWhole(key)) session.assignAttribute(key, undefined);
    }
    if (isLeft) this.#signOut(keys);
  }

  /** @throws SessionAttributeError outside of a request, whose client cannot have chosen it */
  #refuse(key: string, written: unknown): void {
    const { session } = this;
    if (this.#request) {
      this.#tell('not-by-passport');
      session.assignAttribute(key, written);
    } else if (!session.isNew || !session.signsIn) {
      throw new SessionAttributeError(key, NOT_BY_PASSPORT);
    }
  }

  /** Takes over a login, once the session has the user of it. */
  #settle(login: PassportLogin): void {
    const { session } = this;
    const { key } = login;
    const property = session.asStored(key, login.property);
    if (!isDeepStrictEqual(this.#userOf(key, this.#property(key)), this.#userOf(key, property))) return;
    const name = principalNameOf(session.asStored(key, login.user), PASSPORT_USER);
    this.#settled = login;
    this.#written = { key, property };
    if (name === undefined) this.#tell('no-id');
    // A sign-in of the application since then has decided it.
    else if (name !== session.principalName && !this.#hasSignedIn) session.setPrincipal(name);
  }

  /** All that Passport takes for its user in its property: beside that, an application may keep there what it likes. */
  #userOf(key: string, property: unknown): unknown {
    return this.#isWhole(key) ? property : userIn(property);
  }

  /** Whether the property may be one of @fastify/passport, to which all of it is the user. */
  #isWhole(key: string): boolean {
    if (this.rule.passportKeys?.wrapped.has(key)) return false;
    const request = this.#request;
    return !request || fastifyRequestOf(request) !== undefined;
  }

  /** The user of Passport is gone, and with it the principal: unless somebody else is signed in. */
  #signOut(keys: ReadonlySet<string>): void {
    const { principalName } = this.session;
    const isAnothers = [...keys].some((key) => nameIfAny(userIn(this.#property(key))) === principalName);
    if (principalName !== undefined && !isAnothers && !this.#hasSignedIn) this.session.setPrincipal(undefined);
  }

  #tell(reason: NoPrincipalReason): void {
    const request = this.#request;
    if (request) this.report(reason, request, this.session.id);
  }

  #property(key: string): unknown {
    return this.session.asStored(key, this.session.peekAttribute(key));
  }

  /** The properties as the next request reads them, so that a function finds the same in both. */
  #asStored(): SessionProperties {
    const { session } = this;
    return propertiesOf(session.attributeNames, (name) => session.asStored(name, session.getAttribute(name)));
  }

  get #hasSignedIn(): boolean {
    const { authenticatedAt } = this.session;
    return authenticatedAt !== undefined && authenticatedAt !== this.#authenticatedAt;
  }
}

const NOT_BY_PASSPORT =
  'is where Passport keeps its user, and only a login by Passport in an HTTP request changes it. A new session may have ' +
  'it after session.signIn(name). If the application does not use Passport, set the option `principal` of ' +
  'ExpressSessionModule.forRoot() to false or to a function';

const SIGN_IN_NOT_FOUND =
  'Nobody was signed in, and nothing was saved, because the option `principal` of ExpressSessionModule.forRoot() does not ' +
  'find the name that signIn(name) got: after the call, and before the save, assign the property that the function reads, ' +
  'or set `principal: false` and let signIn() alone decide';

/** A save of changes asks the rule by itself. */
function isUnchanged(session: TrackedSession): boolean {
  return !session.isNew && !session.isGone && !session.isOver && !session.isSet && !session.response?.headersSent;
}

/** Each is read when the function of the option asks for it. */
function propertiesOf(names: readonly string[], read: (name: string) => unknown): SessionProperties {
  const properties = {};
  for (const name of names.filter(isOwn)) {
    const get = () => read(name);
    Object.defineProperty(properties, name, { get, enumerable: true, configurable: true });
  }
  return properties as SessionProperties;
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
