import type { IncomingMessage } from 'node:http';
import type { ExecutionContext } from '@nestjs/common';
import { GraphqlOperation } from '../http/graphql-operation.js';
import { isUpgrade } from '../http/request-of.js';

/** A request of Express or Fastify. */
export interface HttpRequest {
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
  readonly body?: unknown;
  /** The host with its port. */
  readonly host?: unknown;
  /** The method that the client sent, if middleware has replaced it. */
  readonly originalMethod?: unknown;
  /** On Fastify, the Node.js request. */
  readonly raw?: IncomingMessage;
}

/**
 * The HTTP request that a handler or resolver serves. Undefined for messages, for events, and for GraphQL operations
 * over a connection: the origin of a connection is checked when it opens.
 */
export function httpRequestOf(context: ExecutionContext): HttpRequest | undefined {
  const type = context.getType<string>();
  if (type === 'http') return context.switchToHttp().getRequest<HttpRequest>();
  const operation = type === 'graphql' ? GraphqlOperation.find(context) : undefined;
  return operation && !isUpgrade(operation.incoming) ? (operation.request as HttpRequest) : undefined;
}
