import { ForbiddenException } from '@nestjs/common';
import { SessionStateError } from '../errors/session.errors.js';
import type { DetachedSession } from './detached-session.js';
import type { GraphqlOperation } from './graphql-operation.js';
import { RequestSessions } from './request-sessions.js';

const sessions = new WeakMap<object, Promise<DetachedSession | undefined>>();

/**
 * The session of an operation of GraphQL that came over a connection: loaded once for each operation, and once for each
 * event of a subscription, if any of its resolvers asks for it. Undefined when the connection is excluded.
 * @throws ForbiddenException when a page of a foreign origin opened the connection
 */
export function sessionOfOperation(operation: GraphqlOperation): Promise<DetachedSession | undefined> {
  const { execution } = operation;
  const known = sessions.get(execution);
  if (known) return known;
  const loading = load(operation);
  sessions.set(execution, loading);
  return loading;
}

async function load({ incoming, isEvent }: GraphqlOperation): Promise<DetachedSession | undefined> {
  const requests = RequestSessions.serving(incoming);
  if (!requests) throw new SessionStateError(FOREIGN_SERVER);
  if (!requests.allowsOriginOf(incoming)) throw new ForbiddenException(FOREIGN_ORIGIN);
  if (requests.excludes(incoming)) return undefined;
  const detached = await requests.ofOperation(incoming);
  // An event is no access: the user may have left.
  if (isEvent) detached.keepIdle();
  void detached.touch.send();
  return detached;
}

const FOREIGN_ORIGIN =
  'This page may not subscribe: its origin is not the host, and not listed in SessionWebSocketModule.forRoot({ origins })';

const FOREIGN_SERVER =
  'There is no session here: this connection was not opened through the HTTP server of the application';
