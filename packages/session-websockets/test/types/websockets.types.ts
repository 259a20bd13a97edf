// What applications write, and what must not compile, against the built types. Checked by npm run typecheck.
import type { IncomingMessage } from 'node:http';
import type { Session, Sessions } from '@nest-session/core';
import { SessionWebSocketModule, type SessionWebSocketOptionsFactory } from '@nest-session/websockets';
import { expectTypeOf } from 'expect-type';

export function options(): unknown[] {
  return [
    SessionWebSocketModule.forRoot(),
    SessionWebSocketModule.forRoot({ origins: ['https://app.example.com'] }),
    SessionWebSocketModule.forRootAsync({ useFactory: (page: string) => ({ origins: [page] }), inject: ['PAGE'] }),
    // @ts-expect-error a list
    SessionWebSocketModule.forRoot({ origins: 'https://app.example.com' }),
    // @ts-expect-error an unknown option
    SessionWebSocketModule.forRoot({ origin: [] }),
  ];
}

export class Options implements SessionWebSocketOptionsFactory {
  createSessionWebSocketOptions() {
    return { origins: ['https://app.example.com'] };
  }
}

export function load(sessions: Sessions, request: IncomingMessage): void {
  expectTypeOf(sessions.load(request)).toEqualTypeOf<Promise<Session | null>>();
  // @ts-expect-error no request
  void sessions.load('request');
}
