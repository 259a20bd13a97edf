import type { IncomingMessage, ServerResponse } from 'node:http';
import { setOrigin } from '../resolvers/proxied-request.js';
import type { RequestServer } from './serve-request.js';

interface FastifyRequest {
  readonly raw: IncomingMessage & { session?: unknown };
  readonly protocol: string;
  readonly hostname: string;
  readonly ip: string;
}

interface FastifyInstance {
  decorateRequest(
    name: string,
    property: { getter(this: FastifyRequest): unknown; setter(this: FastifyRequest, value: unknown): void },
  ): unknown;
  addHook(name: 'onRequest', hook: OnRequest): unknown;
  addHook(name: 'onRegister', hook: (context: FastifyInstance) => void): unknown;
  use?: Use;
}

type Use = (this: FastifyInstance, ...middleware: unknown[]) => unknown;

type OnRequest = (
  request: FastifyRequest,
  reply: { readonly raw: ServerResponse },
  next: (error?: unknown) => void,
) => void;

/** By a hook: the engine that runs middleware costs a request more than its session. */
export function bindToFastify(fastify: FastifyInstance, middleware: RequestServer['serve']): void {
  // Middleware gets the Node.js request, and handlers get Fastify's.
  fastify.decorateRequest('session', {
    getter() {
      return this.raw.session;
    },
    setter(session) {
      this.raw.session = session;
    },
  });
  fastify.addHook('onRequest', (request, reply, next) => {
    setOrigin(request.raw, request);
    middleware(request.raw, reply.raw, next);
  });
  // Otherwise the engine is added later, and its hook runs after ours.
  if (!fastify.use) return;
  putBeforeFirst(middleware, fastify, fastify.use);
  // The engine gives each context of a plugin its own `use()`.
  fastify.addHook('onRegister', (context) => {
    if (context.use) putBeforeFirst(middleware, context, context.use);
  });
}

/** NestFactory adds the engine before it constructs providers, so its middleware would run before our hook. */
function putBeforeFirst(middleware: RequestServer['serve'], fastify: FastifyInstance, use: Use): void {
  fastify.use = (...args) => {
    fastify.use = use;
    use.call(fastify, middleware);
    return use.apply(fastify, args);
  };
}
