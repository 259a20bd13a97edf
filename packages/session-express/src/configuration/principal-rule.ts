import type { SessionData } from 'express-session';

/** The properties of a session, which are passed to functions of the options. */
export type SessionProperties = Readonly<Partial<SessionData>> & Readonly<Record<string, unknown>>;

/** Returns the name of the signed-in user of a session, or undefined or null if there is none. */
export type PrincipalOfSession = (session: SessionProperties) => string | number | undefined | null;

/** Determines the principal of a session. */
export interface PrincipalRule {
  /** Whether it decides for a session with these attributes. Otherwise the application sets `principalName` itself. */
  decides(names: readonly string[]): boolean;
  /** Whether it may depend on an attribute. */
  mayRead(name: string): boolean;
  /** Returns the name of the principal, or undefined if no user is signed in. */
  nameIn(session: SessionProperties): string | undefined;
}

/** Returns the rule for an option: a function, false for none, or by default the user of Passport. */
export function principalRule(option: PrincipalOfSession | false | undefined): PrincipalRule {
  if (option === false) return { decides: () => false, mayRead: () => false, nameIn: () => undefined };
  if (option) return { decides: () => true, mayRead: () => true, nameIn: (session) => nameOf(option(session)) };
  return {
    decides: (names) => names.includes('passport'),
    mayRead: (name) => name === 'passport',
    nameIn: (session) => userOfPassport(session),
  };
}

function userOfPassport({ passport }: SessionProperties): string | undefined {
  // @fastify/passport stores the user itself.
  const user = typeof passport === 'object' ? memberOf(passport, 'user') : passport;
  return nameOf(typeof user === 'object' ? memberOf(user, 'id') : user);
}

function memberOf(object: unknown, name: string): unknown {
  return typeof object === 'object' && object !== null ? (object as Record<string, unknown>)[name] : undefined;
}

function nameOf(value: unknown): string | undefined {
  if (value instanceof Promise) throw new TypeError('Option `principal` returned a promise, but must return at once');
  const text = typeof value === 'number' ? String(value) : value;
  return typeof text === 'string' && text !== '' ? text : undefined;
}
