import { Inject, Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionDeletedEvent, SessionDestroyedEvent } from '@nest-session/core';
import { beganAt } from '@nest-session/core/internal';
import { MeasuredStores } from '../configuration/measured-stores.js';
import { ATTRIBUTES } from '../instrumentation/attributes.js';
import { SessionMeter } from '../metrics/session-meter.js';

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
    const attributes = { [ATTRIBUTES.namespace]: namespace, [ATTRIBUTES.endReason]: reasonOf(event) };
    this.meter.add('ended', 1, attributes);
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
