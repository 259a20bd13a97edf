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
    const { session, resolver, request, response } = this;
    if (session.isUsed) for (const header of resolver.headers) appendVary(response, header);
    const hasHeaders = session.addHeaders(response);
    const { tokenToSend: token, presented, isRemembered } = session;
    const client = { presented, isRemembered };
    if (token) resolver.send(request, response, token, client);
    else if (session.isSessionDeleted) resolver.expire(request, response, client);
    else if (!hasHeaders) return;
    // A cache that kept the answer would hand out the session, or end it, once more.
    forbidStoring(response);
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
    logger.error(error instanceof Error ? (error.stack ?? error.message) : String(error));
    const status = HttpStatus.INTERNAL_SERVER_ERROR;
    return { status, body: { statusCode: status, message: 'Internal server error' } };
  }
}
