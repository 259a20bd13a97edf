import type { KeyspaceState } from '@nest-session/redis-events/internal';

/** Tokens of values. A class is its own token, unless it has several instances. */
export const REDIS_SESSION_OPTIONS = Symbol('REDIS_SESSION_OPTIONS');
/** Needs `SessionModule`; without it, the error says so. */
export const SESSION_REPOSITORY_OPTIONS = Symbol('SESSION_REPOSITORY_OPTIONS');

/** Scripts by the connection that a request has, and those of background work on the one that it has. */
export const REQUEST_SESSION_SCRIPTS = Symbol('REQUEST_SESSION_SCRIPTS');
export const BACKGROUND_SESSION_SCRIPTS = Symbol('BACKGROUND_SESSION_SCRIPTS');

/** The listener for shadow keys. The token of the application's listener is its class. */
export const SHADOW_KEY_LISTENER = Symbol('SHADOW_KEY_LISTENER');

export interface EndNotifications {
  readonly state: KeyspaceState | 'off';
}

export const END_NOTIFICATIONS = Symbol('END_NOTIFICATIONS');
