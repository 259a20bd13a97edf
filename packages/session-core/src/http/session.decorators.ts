import { createParamDecorator, type ExecutionContext, type PipeTransform, type Type } from '@nestjs/common';
import { SessionStateError } from '../errors/session.errors.js';
import type { SessionAttributeName, Session as SessionType } from '../session/session.js';
import { type Call, callOf, sessionOfCall } from './call.js';
import { SessionMiddleware } from './session.middleware.js';

type Pipe = Type<PipeTransform> | PipeTransform;

/** A session. Your changes stay in memory, and are saved together before the response is sent. */
export type Session = SessionType;

/**
 * Gives a handler of HTTP, a resolver of GraphQL or a message handler of a gateway the session of its request:
 * - the session that its token opened, or else a new one, stored, with its cookie, only once an attribute is set;
 * - undefined in a request that the option `exclude` excludes;
 * - while the store is down, what `@SessionOutagePolicy` says: by default, a 503 response.
 *
 * Over an open connection, such as a WebSocket, it is loaded for each message, and cannot be started, nor get another
 * id.
 * @throws SessionStateError where no session can be, as in a message handler of a microservice
 */
export const Session = (): ParameterDecorator => (target, method, index) => {
  giveSession(target, method, index);
  // Compilers record types before the parameters are decorated; metadata that is written by hand may follow.
  hideType(target, method, index);
  queueMicrotask(() => hideType(target, method, index));
};

const giveSession = createParamDecorator((_: unknown, context: ExecutionContext) =>
  readSessionOfCall(context, (session) => session),
)();

/** Hides the recorded type, which is the decorator, because they share their name: pipes would construct it. */
function hideType(target: object, method: string | symbol | undefined, index: number): void {
  const types = method && (Reflect.getOwnMetadata(PARAMETER_TYPES, target, method) as unknown[] | undefined);
  if (types) Reflect.defineMetadata(PARAMETER_TYPES, types.with(index, Object), target, method);
}

const PARAMETER_TYPES = 'design:paramtypes';

/** Gives a handler the id of its session, which is safe to log. A new session is not stored under it yet. */
export const SessionId: (...pipes: Pipe[]) => ParameterDecorator = createParamDecorator(
  (_: unknown, context: ExecutionContext) => readSessionOfCall(context, (session) => session?.id),
);

/** Gives a handler an attribute of its session, or undefined. The result of pipes is not stored. */
export const SessionAttribute: (name: SessionAttributeName, ...pipes: Pipe[]) => ParameterDecorator =
  createParamDecorator((name: SessionAttributeName, context: ExecutionContext) =>
    readSessionOfCall(context, (session) => session?.getAttribute(name)),
  );

/** `read` gets undefined when the request is excluded. @throws SessionStateError where there can be no session */
function readSessionOfCall<T>(
  context: ExecutionContext,
  read: (session: SessionType | undefined) => T,
): T | Promise<T> {
  const call = callOf(context);
  const isOfRequest = call.request !== undefined && call.kind !== 'operation';
  if (isOfRequest) return read(ofRequest(call));
  if (call.kind === 'other') throw new SessionStateError(NO_REQUEST);
  const held = sessionOfCall(call);
  return held instanceof Promise ? held.then((loaded) => read(loaded?.shown)) : read(held?.shown);
}

function ofRequest({ request, commit }: Call): SessionType | undefined {
  // Another library may have assigned `request.session`, but not where that has the API of express-session.
  if (commit && !commit.parts.extension.properties) return commit.session.shown;
  const { session } = request as { readonly session?: SessionType };
  if (session === undefined && !SessionMiddleware.isInstalled) throw new SessionStateError(SESSION_MODULE_MISSING);
  return session;
}

export const SESSION_MODULE_MISSING =
  'There are no sessions in this application: add SessionModule.forRoot() to the imports of the root module';

const NO_REQUEST = 'There is no session here, because this handler has no request';
