// What the packages that bind requests elsewhere write, against the built types. Checked by npm run typecheck.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { expectTypeOf } from 'expect-type';
import type { Session } from '@nest-session/core';
import {
  DetachedSession,
  type RequestSessions,
  SessionExchange,
  type SessionScope,
} from '@nest-session/core/transport';

export function exchange(request: IncomingMessage, scope: SessionScope): void {
  const found = SessionExchange.of(request);
  expectTypeOf(found).toEqualTypeOf<SessionExchange | undefined>();
  // @ts-expect-error a request may have no session
  void found.session;
  if (!found) return;
  expectTypeOf(found.session.session).toEqualTypeOf<Session>();
  expectTypeOf(found.response).toEqualTypeOf<ServerResponse>();
  expectTypeOf(scope.run(found, () => 1)).toEqualTypeOf<number>();
  // @ts-expect-error read-only
  found.request = request;
}

export async function message(request: IncomingMessage, sessions: RequestSessions, scope: SessionScope): Promise<void> {
  const detached = await sessions.detached(request);
  expectTypeOf(detached.session.session).toEqualTypeOf<Session>();
  expectTypeOf(DetachedSession.run(detached, scope, () => 1)).toEqualTypeOf<number>();
  expectTypeOf(detached.save()).toEqualTypeOf<Promise<void> | undefined>();
  // @ts-expect-error it has no response
  void detached.response;
}

type Transport = typeof import('@nest-session/core/transport');

export type NotForTransports = [
  // @ts-expect-error of @nest-session/core
  Transport['SessionModule'],
  // @ts-expect-error of @nest-session/core/store
  Transport['TrackedSession'],
  // @ts-expect-error internal
  Transport['SessionMiddleware'],
];
