import { traced } from '@nest-session/core/internal';
import { type SessionSweepContext, sweepChannel } from '@nest-session/core/telemetry';
import type { SessionPartitions } from '../keys/session-partitions.js';
import type { ClaimOutcome, SweepResult } from '../cleanup/sweep.counter.js';

type Found = Pick<SessionSweepContext, 'claimed' | 'late'>;

/** Tells the channel `nest-session:sweep` of a search for sessions that are due. `tell`: what it tells of the result. */
export function tracedSweep<T>(
  noticedBy: SessionSweepContext['noticedBy'],
  { namespace }: Pick<SessionPartitions, 'namespace'>,
  call: () => Promise<T>,
  tell: (result: T) => Found,
): Promise<T> {
  if (!sweepChannel.hasSubscribers) return call();
  return traced<T, SessionSweepContext>(sweepChannel, { noticedBy, namespace }, call, tell);
}

/** What a pass found. */
export function foundInPass({ claimed, late }: SweepResult): Found {
  return { claimed, late };
}

/** What a call of claim-expired found. */
export function foundInCall(outcomes: readonly ClaimOutcome[]): Found {
  return { claimed: outcomes.filter((outcome) => outcome === 'claimed').length };
}
