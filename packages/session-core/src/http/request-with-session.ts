import type { IncomingMessage } from 'node:http';
import type { Session } from '../session/session.js';

/**
 * The type of a request of Express, Fastify or Node.js that has a session of this library:
 * `@Req() request: RequestWithSession<Request>`. What other packages declare as the type of its `session`, such as
 * `@types/express-session`, does not matter. In a request that the option `exclude` excludes, there is no session.
 */
export type RequestWithSession<R extends object = IncomingMessage> = Omit<R, 'session'> & { readonly session: Session };
