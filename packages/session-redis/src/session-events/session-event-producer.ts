import { Inject, Injectable, Optional } from '@nestjs/common';
import {
  JsonAttributeSerializer,
  SessionCreatedEvent,
  SessionDeletedEvent,
  type SessionEvent,
  SessionExpiredEvent,
  SessionIdChangedEvent,
  SessionSignedInEvent,
} from '@nest-session/core';
import { ofSessionModule, sessionEventId, type SessionEventInit, shownText } from '@nest-session/core/internal';
import {
  type ResolvedSessionOptions,
  SESSION_OPTIONS,
  SessionEventDispatcher,
  SessionSnapshot,
} from '@nest-session/core/store';
import {
  type EntryKind,
  EventProducer,
  fieldOf,
  nameOf,
  type StreamEntry,
  textsIn,
} from '@nest-session/redis-events/internal';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import { toSessionRecord } from '../repository/session-hash.js';

/** Each entry has the id of its session, whose hash is its data. */
export const SESSION_ENTRIES: EntryKind = {
  types: ['created', 'deleted', 'expired', 'id-changed', 'signed-in'],
  makingRoom: ['created', 'id-changed', 'signed-in'],
  onDemand: ['created', 'signed-in'],
  dueSets: ['expirations', 'ends'],
  data: { keyPrefix: 'sessions:', idField: 'session', endField: 'ended', endTypes: ['deleted', 'expired'] },
};

const json = new JsonAttributeSerializer();

const NO_TIMES = { creationTime: '0', lastAccessedTime: '0', maxInactiveInterval: '0' };

@Injectable()
export class SessionEventProducer extends EventProducer<SessionEvent> {
  readonly kind = SESSION_ENTRIES;
  readonly groupsClass = 'SessionEventGroups';

  readonly handlers: SessionEventDispatcher;

  constructor(
    // Optional, so that the error names the missing module. No provider of this module gives it: Nest would call its
    // hooks before those of the application.
    @Optional() @Inject(SessionEventDispatcher) handlers: SessionEventDispatcher | undefined,
    @Inject(REDIS_SESSION_OPTIONS)
    private readonly stored: Partial<Pick<ResolvedRedisSessionOptions, 'serializer' | 'encryption'>>,
    @Optional() @Inject(SESSION_OPTIONS) private readonly options?: Pick<ResolvedSessionOptions, 'ids' | 'serializer'>,
  ) {
    super();
    this.handlers = ofSessionModule(handlers, 'RedisSessionModule');
  }

  toEvent(entry: StreamEntry, data: Readonly<Record<string, string>>, attempt: number): SessionEvent | undefined {
    const init = this.#initOf(entry, data, attempt);
    switch (fieldOf(entry, 'type')) {
      case 'created':
        return new SessionCreatedEvent(init);
      case 'deleted':
        return new SessionDeletedEvent({ ...init, reason: fieldOf(entry, 'cause') as SessionDeletedEvent['reason'] });
      case 'expired':
        return new SessionExpiredEvent(init);
      case 'id-changed':
        return new SessionIdChangedEvent({ ...init, previousSessionId: fieldOf(entry, 'previous') ?? '' });
      case 'signed-in':
        return new SessionSignedInEvent(init);
      default:
        return undefined;
    }
  }

  /** As log lines of the dispatcher show `event.id`. */
  shownIdOf(entry: StreamEntry): string {
    const [type, sessionId] = [fieldOf(entry, 'type'), fieldOf(entry, 'session')];
    if (type === undefined || sessionId === undefined) return nameOf(entry);
    return shownText(sessionEventId(type, this.options?.ids.shown(sessionId) ?? sessionId));
  }

  /** As this library stores them, of those that Redis has. */
  protected readFields(data: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    return data;
  }

  #initOf(entry: StreamEntry, data: Readonly<Record<string, string>>, attempt: number): SessionEventInit {
    const { encryption } = this.stored;
    const serializer = this.stored.serializer ?? this.options?.serializer ?? json;
    const sessionId = fieldOf(entry, 'session') ?? '';
    const dataLost = toSessionRecord(sessionId, data) === undefined;
    const known: Record<string, string> = {
      ...(dataLost ? NO_TIMES : this.readFields(data)),
      // Who signed in: the session may have another id by now, another principal, or be gone.
      ...textsIn(fieldOf(entry, 'who')),
    };
    const stored = toSessionRecord(sessionId, known)!;
    // A missing key fails the handler that reads an attribute, so that the event is kept and handled again.
    const session = new SessionSnapshot(encryption?.decrypted(stored) ?? stored, serializer, this.options?.ids);
    const at = Number(fieldOf(entry, 'at'));
    const traceparent = fieldOf(entry, 'traceparent');
    return { sessionId, at, session, device: known['device'], dataLost, attempt, traceparent };
  }
}
