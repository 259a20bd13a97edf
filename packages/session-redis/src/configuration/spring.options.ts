import type { OptionReader } from '@nest-session/core/internal';
import type { RedisSessionModuleOptions } from './redis-session.options.js';

/** How an application uses the sessions that Spring Session keeps. */
export type SpringMode = 'read';

/** They belong to a store that writes, in a format of its own. */
const OF_OUR_STORE = [
  'partitions',
  'grace',
  'cleanup',
  'expirations',
  'notifications',
  'replicas',
  'events',
  'serializer',
  'encryption',
] as const satisfies readonly (keyof RedisSessionModuleOptions)[];

/** The option `spring`, and the others that must not be set beside it. */
export function readSpring(reader: OptionReader, options: RedisSessionModuleOptions): SpringMode | undefined {
  const mode = reader.value('spring', isMode, "'read'");
  if (mode === undefined) return undefined;
  for (const name of OF_OUR_STORE) {
    if (options[name] === undefined) continue;
    reader.problem(`Option \`${name}\` has no effect with \`spring: '${mode}'\`: leave one of them out.`);
  }
  return mode;
}

function isMode(value: unknown): value is SpringMode {
  return value === 'read';
}
