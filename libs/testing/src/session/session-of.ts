import type { INestApplication } from '@nestjs/common';
import { type Session, SessionIdResolver, SessionRepository } from '@nest-session/core';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import type { HttpAgent } from '../http/http.agent.js';
import { exchangeOf } from './client-exchange.js';

/**
 * Loads the session that the next request of a client to this path would have, or null if there is none. It sends no
 * request, and does not renew the session.
 */
export async function sessionOf(app: INestApplication, agent: HttpAgent, path = '/'): Promise<Session | null> {
  const resolver = app.get<SessionIdResolver>(SessionIdResolver, { strict: false });
  const repository = app.get<SessionRepository>(SessionRepository, { strict: false });
  const { ids } = app.get<ResolvedSessionOptions>(SESSION_OPTIONS, { strict: false });
  const presented = resolver.resolve(exchangeOf(agent, path).request).map((token) => ids.find(token));
  const sessions = await repository.findByIds(presented.filter((id) => id !== undefined));
  const live = sessions.filter((session) => session !== null);
  return live.find(({ principalName }) => principalName !== undefined) ?? live[0] ?? null;
}
