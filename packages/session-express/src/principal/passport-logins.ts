import type { IncomingMessage } from 'node:http';
import { fastifyRequestOf } from '@nest-session/core/internal';

/** The properties in which Passport keeps its users. */
export class PassportKeys extends Set<string> {
  /** Those of Passport itself, which keeps the user in an object there. @fastify/passport takes the whole property. */
  readonly wrapped = new Set<string>();
}

export interface PassportLogin {
  readonly key: string;
  readonly user: unknown;
  /** What it keeps in the session under the key. */
  readonly property: unknown;
}

/** The session manager of Passport 0.4 to 0.7 and, with the names in which it differs, of @fastify/passport. */
interface SessionManager {
  _key?: unknown;
  _serializeUser?: unknown;
  key?: unknown;
  serializeUser?: unknown;
}

interface PassportRequest {
  /** Since 0.5.1, and before. */
  readonly _sessionManager?: SessionManager;
  readonly _passport?: { readonly instance?: { readonly _sm?: SessionManager } };
  /** Of Fastify. */
  readonly passport?: { readonly sessionManager?: SessionManager };
  readonly raw?: IncomingMessage;
}

const logins = new WeakMap<object, PassportLogin>();
const watched = new WeakSet<SessionManager>();

export function passportLoginOf(request: IncomingMessage): PassportLogin | undefined {
  return logins.get(request);
}

// A property of the session says nothing of who wrote it. So the function is watched that serializes users: every login
// reads `req.session` before or after it.
export function watchPassport(request: IncomingMessage, keys: PassportKeys): void {
  const { _sessionManager, _passport } = request as PassportRequest;
  const manager =
    _sessionManager ??
    _passport?.instance?._sm ??
    (fastifyRequestOf(request) as PassportRequest | undefined)?.passport?.sessionManager;
  if (!manager) return;
  const key = manager._key ?? manager.key;
  if (typeof key !== 'string') return;
  keys.add(key);
  if (manager._key !== undefined) keys.wrapped.add(key);
  if (watched.has(manager)) return;
  watched.add(manager);
  const { _serializeUser, serializeUser } = manager;
  if (typeof _serializeUser === 'function') manager._serializeUser = calling(_serializeUser as Serializer, key);
  else if (typeof serializeUser === 'function') manager.serializeUser = resolving(serializeUser as Serializer, key);
}

type Serializer = (...args: unknown[]) => unknown;

/** Passport calls it with the user, the request and a callback. */
function calling(serialize: Serializer, key: string): Serializer {
  return function (this: unknown, user, request, done, ...others) {
    const record = (error: unknown, kept: unknown, ...rest: unknown[]) => {
      if (!error) logins.set(request as object, { key, user: kept, property: { user: kept } });
      return (done as Serializer)(error, kept, ...rest);
    };
    return serialize.call(this, user, request, record, ...others);
  };
}

/** @fastify/passport calls it with the user and its request, and awaits the result. */
function resolving(serialize: Serializer, key: string): Serializer {
  return async function (this: unknown, user, request, ...others) {
    const kept = await serialize.call(this, user, request, ...others);
    const { raw } = request as PassportRequest;
    if (raw) logins.set(raw, { key, user: kept, property: kept });
    return kept;
  };
}
