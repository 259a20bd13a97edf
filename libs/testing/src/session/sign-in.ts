import type { INestApplication } from '@nestjs/common';
import { type SessionAttributes, SessionIdResolver, SessionRepository } from '@nest-session/core';
import { TrackedSession } from '@nest-session/core/internal';
import { HttpAgent } from '../http/http.agent.js';
import { exchangeOf } from './client-exchange.js';

/** The contents of the session of a signed-in client: at least one attribute, or a principal. */
export interface SignedInSession {
  /** The name of the principal. */
  readonly principalName?: string;
  /** The attributes by name. If `SessionAttributes` declares attributes, only these are allowed. */
  readonly attributes?: Readonly<
    [keyof SessionAttributes] extends [never] ? Record<string, unknown> : Partial<SessionAttributes>
  >;
  /** Seconds. @default the `timeout` of the application */
  readonly maxInactiveInterval?: number;
}

/** The client to sign in, and the path of its requests. */
export interface SignInOptions {
  /** The client that is signed in. @default a new one */
  readonly agent?: HttpAgent;
  /** The path that selects the session, such as `'/?_s=1'` with the option `multipleSessions`. @default '/' */
  readonly path?: string;
}

/**
 * Signs a client of the application in without a login request. It creates the session in the application's store, and
 * puts the token where the `SessionIdResolver` of the application reads it.
 */
export async function signIn(
  app: INestApplication,
  { principalName, attributes = {}, maxInactiveInterval }: SignedInSession,
  { agent, path = '/' }: SignInOptions = {},
): Promise<HttpAgent> {
  const client = agent ?? (await HttpAgent.for(app));
  const repository = app.get<SessionRepository>(SessionRepository, { strict: false });
  const session = repository.createSession();
  if (principalName !== undefined) session.signIn(principalName);
  for (const [name, value] of Object.entries(attributes)) session.setAttribute(name, value);
  if (maxInactiveInterval !== undefined) session.maxInactiveInterval = maxInactiveInterval;
  await repository.save(session);
  const token = TrackedSession.of(session).tokenToSend;
  if (!token) throw new Error('signIn() needs a principalName or an attribute: an empty session is not stored');

  const resolver = app.get<SessionIdResolver>(SessionIdResolver, { strict: false });
  const { request, response } = exchangeOf(client, path);
  resolver.send(request, response, token, { isRemembered: false });
  client.keep(response.getHeaders(), path);
  const presented = resolver.resolve(exchangeOf(client, path).request);
  if (!presented.some((each) => each.reveal() === token.reveal())) throw new Error(NOT_PRESENTED);
  return client;
}

const NOT_PRESENTED =
  'The client of signIn() does not send its session to the application. For a Secure cookie, the client must use ' +
  'https: signIn(app, session, { agent: await HttpAgent.for(app, { secure: true }) }). For a cookie with a path, pass a ' +
  '`path` below it';
