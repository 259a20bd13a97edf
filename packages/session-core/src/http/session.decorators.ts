import { createParamDecorator, type ExecutionContext, type PipeTransform, type Type } from '@nestjs/common';
import type { SessionAttributeName } from '../session/session-attributes.js';
import type { Session as SessionType } from '../session/session.js';
import { readSessionOfCall } from './session-of-call.js';

type Pipe = Type<PipeTransform> | PipeTransform;

/**
 * A session. Your changes are kept in memory and saved together before the response is sent; an object that you read
 * and change in place is saved as well. Only changed attributes are written. After `invalidate()`, reads give undefined
 * and writes throw a `SessionStateError`.
 */
export type Session = SessionType;

/**
 * Gives a handler of HTTP, a resolver of GraphQL or a message handler of a gateway the session of its request:
 * - the session that its token opened, or else a new one, which is stored, and its cookie sent, only once an attribute
 *   is set;
 * - undefined in a request that the option `exclude` excludes;
 * - while the store is down, what `@SessionOutagePolicy` says: by default the parameter throws, which is a 503 response.
 *
 * It is `request.session`, whose rule is `RequestSession.session`. Over an open connection, such as a WebSocket, it is
 * loaded for each message; it cannot be started there, and its id cannot be changed.
 * @throws SessionStateError where no session can be, as in a message handler of a microservice
 */
export const Session: () => ParameterDecorator = createParamDecorator((_: unknown, context: ExecutionContext) =>
  readSessionOfCall(context, (session) => session),
);

/** Gives a handler the id of its session, which is safe to log. A new session is not stored under it yet. */
export const SessionId: (...pipes: Pipe[]) => ParameterDecorator = createParamDecorator(
  (_: unknown, context: ExecutionContext) => readSessionOfCall(context, (session) => session?.id),
);

/** Gives a handler an attribute of its session, or undefined. The result of pipes is not stored. */
export const SessionAttribute: (name: SessionAttributeName, ...pipes: Pipe[]) => ParameterDecorator =
  createParamDecorator((name: SessionAttributeName, context: ExecutionContext) =>
    readSessionOfCall(context, (session) => session?.getAttribute(name)),
  );
