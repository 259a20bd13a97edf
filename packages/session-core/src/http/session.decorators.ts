import { createParamDecorator, type ExecutionContext, type PipeTransform, type Type } from '@nestjs/common';
import type { Session as SessionType } from '../session/session.js';

type Pipe = Type<PipeTransform> | PipeTransform;

function sessionOf(context: ExecutionContext): SessionType | undefined {
  return context.switchToHttp().getRequest<{ session?: SessionType }>().session;
}

/**
 * A session. Changes are kept in memory and stored together, as a delta, before the response leaves; an object that
 * was read and then changed in place is stored as well. After `invalidate()` reads give undefined and writes throw
 * `SessionStateError`.
 */
export type Session = SessionType;

/**
 * Gives a handler the session of its request. A request without a session gets a new one, which is stored, and its
 * cookie sent, only once an attribute is set.
 */
export const Session: () => ParameterDecorator = createParamDecorator((_: unknown, context: ExecutionContext) =>
  sessionOf(context),
);

/** Gives a handler the id of its session, which is safe to log; the id of a new session is not stored yet. */
export const SessionId: (...pipes: Pipe[]) => ParameterDecorator = createParamDecorator(
  (_: unknown, context: ExecutionContext) => sessionOf(context)?.id,
);

/** Gives a handler an attribute of its session, or undefined. What pipes make of the value is not stored. */
export const SessionAttribute: (name: string, ...pipes: Pipe[]) => ParameterDecorator = createParamDecorator(
  (name: string, context: ExecutionContext) => sessionOf(context)?.getAttribute(name),
);
