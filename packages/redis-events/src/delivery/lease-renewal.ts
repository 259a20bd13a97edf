import { PollingLoop } from '@nest-session/core/store';
import { untilSound } from '../connection/until-sound.js';
import type { ConcurrencyLimiter } from './concurrency.limiter.js';
import type { ConsumerGroupMember } from './consumer-group-member.js';

// Milliseconds. Each instance takes events over by its own lease: during a deployment, others may have the default of
// 30 s.
const LONGEST_INTERVAL = 10_000;

/** What `leaseRenewal()` needs of the group. */
type Renewing = Pick<ConsumerGroupMember, 'renew'> & { readonly rules: Pick<ConsumerGroupMember['rules'], 'lease'> };

/** Renews the leases on the entries that this instance handles, as long as the loop runs; see `untilSound()`. */
export function leaseRenewal(
  group: Renewing,
  handled: Pick<ConcurrencyLimiter, 'entries'>,
  signal: AbortSignal,
): PollingLoop {
  // Three times per lease, so that one late renewal does not lose it.
  const interval = Math.min(group.rules.lease / 3, LONGEST_INTERVAL);
  return new PollingLoop('The renewal of leases on events', interval, () =>
    untilSound(() => group.renew(handled.entries), signal),
  );
}
