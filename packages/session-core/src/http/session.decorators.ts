import { createParamDecorator, type ExecutionContext, type PipeTransform, type Type } from '@nestjs/common';
import type { Session } from '../session/session.js';

type Pipe = Type<PipeTransform> | PipeTransform;

function sessionOf(context: ExecutionContext): Session | undefined {
  return context.switchToHttp().getRequest<{ session?: Session }>().session;
}

/** Gives a handler the id of its session, which is safe to log; the id of a new session is not stored yet. */
export const SessionId: (...pipes: Pipe[]) => ParameterDecorator = createParamDecorator(
  (_: unknown, context: ExecutionContext) => sessionOf(context)?.id,
);

/** Gives a handler an attribute of its session, or undefined; what pipes make of it is not stored. */
export const SessionAttribute: (name: string, ...pipes: Pipe[]) => ParameterDecorator = createParamDecorator(
  (name: string, context: ExecutionContext) => sessionOf(context)?.getAttribute(name),
);
