// What authors of stores write, and what must not compile, against the built types. Checked by npm run typecheck.
import { expectTypeOf } from 'expect-type';
import { type ReadonlySession, type Session, SessionExpiredEvent, SessionRepository } from '@nest-session/core';
import { parseDuration, TrackedSession } from '@nest-session/core/internal';
import type {
  SessionChange,
  SessionEventDispatcher,
  SessionRecord,
  SessionSnapshot,
  UpdateReply,
  WriteReply,
} from '@nest-session/core/store';

export function replies(): WriteReply[] {
  return [
    { outcome: 'created', creationTime: 0 },
    { outcome: 'saved' },
    { outcome: 'touched' },
    { outcome: 'deleted' },
    { outcome: 'forwarded' },
    { outcome: 'gone' },
    { outcome: 'conflict', current: undefined },
    // @ts-expect-error a creation tells its time
    { outcome: 'created' },
    // @ts-expect-error a conflict tells the text that was found
    { outcome: 'conflict' },
    // @ts-expect-error the word is forwarded
    { outcome: 'moved' },
  ];
}

export function change(asked: SessionChange): string {
  switch (asked.kind) {
    case 'create':
      expectTypeOf(asked.presentedIds).toEqualTypeOf<readonly string[]>();
      return asked.id;
    case 'update':
      expectTypeOf(asked.newId).toEqualTypeOf<string | undefined>();
      return asked.id;
    case 'touch':
      // @ts-expect-error a touch changes no attributes
      return String(asked.attributes);
    case 'delete':
      return asked.id;
    default:
      return asked satisfies never;
  }
}

export function record(stored: SessionRecord, reply: UpdateReply, snapshot: SessionSnapshot): void {
  expectTypeOf(stored.timeToLive).toEqualTypeOf<number | undefined>();
  // @ts-expect-error read-only
  stored.id = 'other';
  // @ts-expect-error only a conflict has it
  void reply.current;
  expectTypeOf(snapshot).toExtend<ReadonlySession>();
  // @ts-expect-error a snapshot cannot be changed
  snapshot.setAttribute('items', []);
}

export function session(sessions: SessionRepository, dispatcher: SessionEventDispatcher): void {
  expectTypeOf(TrackedSession.of(sessions.createSession())).toExtend<Session>();
  expectTypeOf(parseDuration('30m')).toEqualTypeOf<number | string>();
  const init = { sessionId: 'id', at: 0, session: sessions.createSession() };
  void dispatcher.dispatch(new SessionExpiredEvent(init), { redelivered: true, done: ['Carts.remind'] });
  // @ts-expect-error an event has its session
  void dispatcher.dispatch(new SessionExpiredEvent({ sessionId: 'id', at: 0 }));
  // @ts-expect-error an unknown option
  void dispatcher.dispatch(new SessionExpiredEvent(init), { again: true });
}

// @ts-expect-error the port is not implemented
export class Incomplete extends SessionRepository {}

type Store = typeof import('@nest-session/core/store');

export type NotForStores = [
  // @ts-expect-error of @nest-session/core
  Store['SessionModule'],
  // @ts-expect-error of @nest-session/core/internal
  Store['SessionExchange'],
  // @ts-expect-error internal
  Store['resolveSessionOptions'],
];
