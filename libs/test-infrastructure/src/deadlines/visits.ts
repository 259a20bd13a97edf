import { Injectable } from '@nestjs/common';
import { deadline, type DeadlineEvent, OnDeadline } from '@nest-session/deadlines';

/** A kind of deadlines with any data, and two without. */
export const visit = deadline<unknown>('contract.visit');
export const call = deadline('contract.call');
export const unhandled = deadline<unknown>('contract.unhandled');

/** Handles two kinds. */
@Injectable()
export class Visits {
  readonly events: DeadlineEvent[] = [];

  @OnDeadline(visit)
  @OnDeadline(call)
  record(event: DeadlineEvent) {
    this.events.push(event);
  }
}

/** Handles a kind, and fails as often as it is told to. */
@Injectable()
export class FailingVisits {
  readonly events: DeadlineEvent[] = [];
  failures = Infinity;

  @OnDeadline(visit)
  async record(event: DeadlineEvent<typeof visit>) {
    this.events.push(event);
    if (this.failures-- > 0) throw new Error('Nobody is at home');
  }
}

/** Every instance handles the kind. */
@Injectable()
export class Announcements {
  readonly events: DeadlineEvent[] = [];

  @OnDeadline(visit, { broadcast: true })
  announce(event: DeadlineEvent<typeof visit>) {
    this.events.push(event);
  }
}
