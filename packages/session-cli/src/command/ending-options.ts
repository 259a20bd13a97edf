import type { CommandCall, StoreAddress } from './command.js';

/**
 * The options of the application for a command that ends sessions: how long the data of what it ends is kept. The
 * command does not know the grace period of the application, so it allows any retention from one second on.
 */
export function endingOptions({ values }: Pick<CommandCall, 'values'>): Pick<StoreAddress, 'grace' | 'events'> {
  return { grace: '1s', events: { retention: values['retention'] } };
}
