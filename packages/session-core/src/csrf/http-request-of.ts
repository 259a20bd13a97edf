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
  /** The method that the client sent, where middleware has replaced it. */
  readonly originalMethod?: unknown;
  /** Of Fastify: the request of Node.js. */
  readonly raw?: IncomingMessage;
}

/**
 * The HTTP request on whose behalf a handler or resolver runs; undefined for messages and events, and for operations of
 * GraphQL over a connection, whose origin is checked when it is opened.
 */
export function httpRequestOf(context: ExecutionContext): HttpRequest | undefined {
  const type = context.getType<string>();
  if (type === 'http') return context.switchToHttp().getRequest<HttpRequest>();
  const operation = type === 'graphql' ? GraphqlOperation.find(context) : undefined;
  return operation && !isUpgrade(operation.incoming) ? (operation.request as HttpRequest) : undefined;
}
