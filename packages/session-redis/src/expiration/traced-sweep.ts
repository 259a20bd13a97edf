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

type NoticedBy = SessionSweepContext['noticedBy'];
type Namespace = Pick<SessionPartitions, 'namespace'>;

/** Tells the channel `nest-session:sweep` of a pass, which counts in `tally` what it finds. */
export function tracedPass<T>(
  noticedBy: NoticedBy,
  { namespace }: Namespace,
  tally: Pick<SweepCounter, 'takeFound'>,
  pass: () => Promise<T>,
): Promise<T> {
  if (!sweepChannel.hasSubscribers) return pass();
  tally.takeFound();
  return traced<T, SessionSweepContext>(sweepChannel, { noticedBy, namespace }, pass, () => tally.takeFound());
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
  noticedBy: NoticedBy,
  { namespace }: Namespace,
  call: () => Promise<Claim[]>,
): Promise<Claim[]> {
  if (!sweepChannel.hasSubscribers) return call();
  return traced<Claim[], SessionSweepContext>(sweepChannel, { noticedBy, namespace }, call, (claims) => {
    const claimed = claims.filter(({ outcome }) => outcome === 'claimed');
    return { claimed: claimed.length, delays: claimed.flatMap(({ delay }) => delay ?? []) };
  });
}
