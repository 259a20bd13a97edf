import { traced } from '@nest-session/core/internal';
import { type SessionSweepContext, sweepChannel } from '@nest-session/core/telemetry';
import {
  type Claim,
  type DueList,
  DuePoller,
  type PartitionSignals,
  type SweepCounter,
} from '@nest-session/redis-events/internal';
import type { SessionKeys } from '../keys/session-keys.js';
import type { SessionPartitions } from '../keys/session-partitions.js';

/** Tells the channel `nest-session:sweep` of a search for what is due, and by `tell` of its result. */
function tracedSweep<T>(
  noticedBy: SessionSweepContext['noticedBy'],
  { namespace }: Pick<SessionPartitions, 'namespace'>,
  call: () => Promise<T>,
  tell: (result: T) => Pick<SessionSweepContext, 'claimed' | 'late' | 'delays'>,
): Promise<T> {
  if (!sweepChannel.hasSubscribers) return call();
  return traced<T, SessionSweepContext>(sweepChannel, { noticedBy, namespace }, call, tell);
}

/** The same for a pass, which counts in `tally` what it finds. */
export function tracedPass<T>(
  noticedBy: SessionSweepContext['noticedBy'],
  partitions: Pick<SessionPartitions, 'namespace'>,
  tally: Pick<SweepCounter, 'takeFound'>,
  pass: () => Promise<T>,
): Promise<T> {
  if (!sweepChannel.hasSubscribers) return pass();
  tally.takeFound();
  return tracedSweep(noticedBy, partitions, pass, () => tally.takeFound());
}

/** Polls for sessions that are due by a list of their ends, and tells the channel of each look. */
export function tracedPoller(
  list: DueList<SessionKeys>,
  partitions: SessionPartitions,
  signals: PartitionSignals,
): DuePoller<SessionKeys> {
  const claimIn: DueList<SessionKeys>['claimIn'] = (keys, tally, options) =>
    tracedPass('poll', partitions, tally, () => list.claimIn(keys, tally, options));
  return new DuePoller('sessions', { claimIn }, partitions.all, signals);
}

/** Tells the channel of a call of claim-expired. */
export function tracedClaims(
  noticedBy: SessionSweepContext['noticedBy'],
  partitions: Pick<SessionPartitions, 'namespace'>,
  call: () => Promise<Claim[]>,
): Promise<Claim[]> {
  return tracedSweep(noticedBy, partitions, call, (claims) => {
    const claimed = claims.filter(({ outcome }) => outcome === 'claimed');
    return { claimed: claimed.length, delays: claimed.flatMap(({ delay }) => delay ?? []) };
  });
}
