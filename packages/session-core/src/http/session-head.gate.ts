import type { IncomingMessage, ServerResponse } from 'node:http';
import { HttpStatus, Logger } from '@nestjs/common';
import { SessionStoreError } from '../session.errors.js';
import { appendVary, forbidStoring } from './response.headers.js';
import type { ErrorAnswer, HeadGate } from './response-hold.js';
import type { SessionIdResolver } from './resolvers/session-id.resolver.js';
import type { SessionRequest } from './session-request.js';

const logger = new Logger('Session');

/** Lets the head of a response wait for the save of its session, and puts the token on it. */
export class SessionHeadGate implements HeadGate {
  constructor(
    private readonly session: SessionRequest,
    private readonly resolver: SessionIdResolver,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
  ) {}

  begin(): Promise<void> | undefined {
    return this.session.startHead();
  }

  complete(): void {
    const { session, response } = this;
    const hasHeaders = session.addHeaders(response);
    try {
      const answered: unknown = this.#answerClient();
      // The compiler lets the method of a resolver be `async`.
      if (answered instanceof Promise) answered.catch(reportResolver);
    } catch (error) {
      // What is stored is stored. An exception in the midst of whatever sends the answer could end the process.
      reportResolver(error);
    }
    // A cache that kept the answer would hand out the session, or end it, once more.
    if (session.tokenToSend || session.isSessionDeleted || hasHeaders) forbidStoring(response);
  }

  /** Returns what the resolver has: nothing, if it is as it should be. */
  #answerClient(): unknown {
    const { session, resolver, request, response } = this;
    const { tokenToSend: token, presented, isRemembered } = session;
    // A cookie that is sent again depends on the one that came, also when nobody has asked for the session.
    if (session.isUsed || token) for (const header of resolver.headers) appendVary(response, header);
    const client = { presented, isRemembered };
    if (token) return resolver.send(request, response, token, client);
    return session.isSessionDeleted ? resolver.expire(request, response, client) : undefined;
  }

  passed(): void {
    if (this.session.isHeadSent) return;
    this.session.closeHead();
    const { response } = this;
    // Not at the cost of the application: a pipeline() into a response alone takes most of the listeners that Node.js
    // allows before it warns of a leak. 0 stands for any number.
    const most = response.getMaxListeners();
    if (most > 0) response.setMaxListeners(most + 1);
    response.once('close', () => this.session.reportUnsaved());
  }

  replace(error: unknown): ErrorAnswer {
    if (error instanceof SessionStoreError) return { status: error.getStatus(), body: error.getResponse() };
    logger.error(described(error));
    const status = HttpStatus.INTERNAL_SERVER_ERROR;
    return { status, body: { statusCode: status, message: 'Internal server error' } };
  }
}

function reportResolver(error: unknown): void {
  logger.error(
    `The SessionIdResolver has failed, and an answer leaves without what it was to add: ${described(error)}`,
  );
}

function described(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
