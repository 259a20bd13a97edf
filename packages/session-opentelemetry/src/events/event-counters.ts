import { Inject, Injectable } from '@nestjs/common';
import {
  OnSecurityEvent,
  OnSessionEvent,
  type SecurityEvent,
  SessionDeletedEvent,
  SessionDestroyedEvent,
} from '@nest-session/core';
import { beganAt, BesideTheLog } from '@nest-session/core/internal';
import { attributesOf } from '../sdk-calls.js';
import { MeasuredStores, SessionMeter } from '../metrics/session-meter.js';

/** Counts the ends of sessions: each once, on one instance of the group. */
@Injectable()
export class SessionEndCounter {
  constructor(
    @Inject(SessionMeter) private readonly meter: SessionMeter,
    @Inject(MeasuredStores) private readonly stores: MeasuredStores,
  ) {}

  @OnSessionEvent(SessionDestroyedEvent)
  countEnd(event: SessionDestroyedEvent): void {
    const { namespace } = this.stores.ofEvents(event.type);
    this.meter.add('ended', 1, attributesOf({ namespace, endReason: reasonOf(event) }));
  }
}

/** The name of the handler, as the dispatcher knows it. */
export const END_COUNTER = `${SessionEndCounter.name}.countEnd`;

/** The value of the attribute for each reason of a deletion. An expiry is `idle` or `absolute`. */
export const END_REASONS: Readonly<Record<SessionDeletedEvent['reason'], string>> = {
  'signed-out': 'sign_out',
  invalidated: 'invalidated',
  revoked: 'revoked',
  limit: 'limit',
  everybody: 'epoch',
};

function reasonOf(event: SessionDestroyedEvent): string {
  if (event instanceof SessionDeletedEvent) return END_REASONS[event.reason];
  return !event.dataLost && endedAbsolutely(event) ? 'absolute' : 'idle';
}

function endedAbsolutely({ session }: SessionDestroyedEvent): boolean {
  const { absoluteTimeout, maxInactiveInterval, lastAccessedTime } = session;
  if (absoluteTimeout < 0) return false;
  const absoluteEnd = beganAt(session) + absoluteTimeout * 1000;
  return maxInactiveInterval < 0 || absoluteEnd <= lastAccessedTime + maxInactiveInterval * 1000;
}

/** Counts security events. The log has those that it has without it. */
@Injectable()
export class SecurityEventCounter {
  constructor(
    @Inject(SessionMeter) private readonly meter: SessionMeter,
    @Inject(MeasuredStores) private readonly stores: MeasuredStores,
  ) {}

  @BesideTheLog()
  @OnSecurityEvent()
  countEvent({ kind, suppressed }: SecurityEvent): void {
    const { namespace } = this.stores.first;
    this.meter.add('securityEvents', 1 + suppressed, attributesOf({ namespace, securityKind: kind }));
  }
}
