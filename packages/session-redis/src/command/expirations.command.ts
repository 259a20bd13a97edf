import { moveExpirations } from '../expiration/move-expirations.js';
import type { RedisSessionModuleOptions } from '../configuration/redis-session.options.js';
import type { CommandCall, ExitCode } from './command.js';
import { counted } from './counted.js';
import { endingOptions } from './ending-options.js';
import { MORE } from './help-text.js';
import { withSessions } from './store-access.js';
import { UsageError } from './usage.error.js';

const STORES = ['buckets', 'sorted-set'] as const;

/** Moves the ends of the sessions to the store that the option `expirations` names. */
export async function run(call: CommandCall): Promise<ExitCode> {
  const { moved, ended, left } = await moveExpirations(await optionsOf(call), { signal: call.signal });
  const more =
    'Some sessions still have their ends in the other store. Set the option expirations in all instances, and run ' +
    'the command again.';
  call.output.report({ moved, ended, left }, [
    `${counted(moved, 'session')} moved, ${ended} had ended`,
    ...(left > 0 ? [more] : []),
  ]);
  return 0;
}

async function optionsOf(call: CommandCall): Promise<RedisSessionModuleOptions> {
  const { address, values } = call;
  const expirations = STORES.find((store) => store === values['to']);
  if (!expirations)
    throw new UsageError(`--to must be ${STORES.join(' or ')}, but is ${JSON.stringify(values['to'])}. ${MORE}`);
  const { count: partitions } = await withSessions(call, async (store) => store.partitions);
  return { ...address, ...endingOptions(call), expirations, partitions };
}
