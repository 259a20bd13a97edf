import type { ScriptSources } from '@nest-session/redis-events/internal';
import { SCRIPT_SOURCES as SESSION_SOURCES } from '@nest-session/redis/internal';
import { LUA_SOURCES } from './lua-sources.js';

/** Of this package, and of those below. */
export const SCRIPT_SOURCES: ScriptSources = { ...SESSION_SOURCES, ...LUA_SOURCES };
