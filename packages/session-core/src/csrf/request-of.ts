import type { IncomingMessage } from 'node:http';
import type { ExecutionContext } from '@nestjs/common';

/** A request of Express or Fastify. */
export interface HttpRequest {
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
  readonly body?: unknown;
  /** The host with its port. */
  readonly host?: unknown;
  /** The method that the client sent, where middleware has replaced it. */
  readonly originalMethod?: unknown;
  /** Of Fastify: the request of Node.js. */
  readonly raw?: IncomingMessage;
}

/** What GraphQL drivers put into the context of a query: Apollo the request, Mercurius the reply. */
interface GraphQlContext {
  readonly req?: HttpRequest;
  readonly reply?: { readonly request: HttpRequest };
}

/** The HTTP request on whose behalf a handler or resolver runs; undefined for messages and events, which have none. */
export function requestOf(context: ExecutionContext): HttpRequest | undefined {
  switch (context.getType<'http' | 'graphql' | 'rpc' | 'ws'>()) {
    case 'http':
      return context.switchToHttp().getRequest<HttpRequest>();
    case 'graphql': {
      const { req, reply } = context.getArgByIndex<GraphQlContext>(2);
      return req ?? reply?.request;
    }
    default:
      return undefined;
  }
}
