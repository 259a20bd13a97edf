import type { CommandCall, StoreAddress } from './command.js';

/**
 * The options of the application for a command that ends sessions: how long the data of what it ends is kept. That is at least
 * the grace period of the application, which the command does not use, so any may be.
 */
export function endingOptions({ values }: Pick<CommandCall, 'values'>): Pick<StoreAddress, 'grace' | 'events'> {
  return { grace: '1s', events: { retention: values['retention'] } };
}
