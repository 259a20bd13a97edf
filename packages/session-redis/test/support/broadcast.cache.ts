import { Injectable } from '@nestjs/common';
import { OnSessionEvent, OnSessionEventGap, SessionEvent, type SessionEventGap } from '@nest-session/core';

/** A provider that records the broadcast events of its instance, and the gaps among them. */
export function broadcastCache() {
  const heard: string[] = [];
  const gaps: SessionEventGap[] = [];
  @Injectable()
  class Cache {
    @OnSessionEvent(SessionEvent, { broadcast: true })
    forget(event: SessionEvent) {
      heard.push(event.id);
    }

    @OnSessionEventGap()
    clear(gap: SessionEventGap) {
      heard.push('gap');
      gaps.push(gap);
    }
  }
  return { heard, gaps, Cache };
}
