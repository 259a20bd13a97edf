import type { INestApplication } from '@nestjs/common';
import { type SessionAttributes, SessionIdResolver, SessionRepository } from '@nest-session/core';
import { TrackedSession } from '@nest-session/core/store';
import { HttpAgent } from '../http/http.agent.js';
import { exchangeOf } from './client-exchange.js';

/** What is in the session of a client that is signed in; at least one attribute, or a principal. */
export interface SignedInSession {
  /** The name of the principal who is signed in. */
  readonly principalName?: string;
  /** The attributes by name. */
  readonly attributes?: Readonly<Partial<SessionAttributes> & Record<string, unknown>>;
  /** Seconds. @default the `timeout` of the application */
  readonly maxInactiveInterval?: number;
}

/** Which client is signed in, and where. */
export interface SignInOptions {
  /** The client that is signed in. @default a new one */
  readonly agent?: HttpAgent;
  /** What it asks for when it is signed in, for an application with `multipleSessions`: `'/?_s=1'`. @default '/' */
  readonly path?: string;
}

/**
 * A client of the application with a session, as if it had signed in: for tests of what comes after that. The session is
 * made in the application's store, and its token put where the `SessionIdResolver` of the application has it.
 */
export async function signIn(
  app: INestApplication,
  { principalName, attributes = {}, maxInactiveInterval }: SignedInSession,
  { agent, path = '/' }: SignInOptions = {},
): Promise<HttpAgent> {
  const client = agent ?? (await HttpAgent.for(app));
  const repository = app.get<SessionRepository>(SessionRepository, { strict: false });
  const session = repository.createSession();
  if (principalName !== undefined) session.principalName = principalName;
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
  'The client of signIn() does not present its session to the application. A cookie that is Secure takes a client on ' +
  'https: signIn(app, session, { agent: await HttpAgent.for(app, { secure: true }) }); one for a path takes a `path` below it';
