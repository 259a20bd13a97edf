import { EVENT_SOURCES } from '@nest-session/redis-events/internal';
import { LUA_SOURCES } from './lua-sources.js';

export const SCRIPT_SOURCES = { ...EVENT_SOURCES, ...LUA_SOURCES };

/** With the library file in which alone scripts differ by the option `expirations`. */
export function sourcesIn(store: 'buckets' | 'sorted-set') {
  return { ...SCRIPT_SOURCES, 'library/place': SCRIPT_SOURCES[`library/place-in-${store}`] };
}
