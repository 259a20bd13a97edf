// What an application writes that takes the session from the request, beside the types of express-session. Checked by
// npm run typecheck.
import type { IncomingMessage } from 'node:http';
import { Req } from '@nestjs/common';
import { expectTypeOf } from 'expect-type';
import type { Request } from 'express';
import type { FastifyRequest } from 'fastify';
import type { RequestWithSession, Session } from '@nest-session/core';

export class Requests {
  onExpress(@Req() request: RequestWithSession<Request>, other: Session): void {
    expectTypeOf(request.session).toEqualTypeOf<Session>();
    expectTypeOf(request.ip).toEqualTypeOf<string | undefined>();
    request.session.setAttribute('visits', 1);
    // @ts-expect-error read-only
    request.session = other;
    // @ts-expect-error attributes are no properties
    request.session.visits = 1;
  }

  onFastify(@Req() request: RequestWithSession<FastifyRequest<{ Querystring: { page: string } }>>): void {
    expectTypeOf(request.session).toEqualTypeOf<Session>();
    expectTypeOf(request.query.page).toEqualTypeOf<string>();
  }

  onNode(request: RequestWithSession): void {
    expectTypeOf(request.session).toEqualTypeOf<Session>();
    expectTypeOf(request.headers).toEqualTypeOf<IncomingMessage['headers']>();
  }

  ofExpressSession(request: Request): void {
    expectTypeOf(request.session.regenerate).toBeFunction();
  }
}
