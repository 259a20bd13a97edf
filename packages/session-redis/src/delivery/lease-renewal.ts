import { PollingLoop } from '@nest-session/core/store';
import type { ConcurrencyLimiter } from './concurrency.limiter.js';
import type { ConsumerGroupMember } from './consumer-group-member.js';

/** Renews the leases on the entries that this instance handles, as long as the loop runs. */
export function leaseRenewal(group: ConsumerGroupMember, handled: Pick<ConcurrencyLimiter, 'entries'>): PollingLoop {
  // Three times per lease, so that one late renewal does not lose it.
  return new PollingLoop('The renewal of leases on events', group.rules.lease / 3, () => group.renew(handled.entries));
}
