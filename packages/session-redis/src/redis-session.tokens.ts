/** Tokens of what is built by factories and not meant for applications. */
export const REDIS_SESSION_OPTIONS = Symbol('REDIS_SESSION_OPTIONS');
export const REDIS_CONNECTIONS = Symbol('REDIS_CONNECTIONS');
export const SESSION_PARTITIONS = Symbol('SESSION_PARTITIONS');
export const REQUEST_CONNECTION = Symbol('REQUEST_CONNECTION');
export const BACKGROUND_SCRIPTS = Symbol('BACKGROUND_SCRIPTS');
export const KEY_EVENT_LISTENER = Symbol('KEY_EVENT_LISTENER');
export const DELIVERY_PACE = Symbol('DELIVERY_PACE');
export const EVENT_STREAM_SCRIPTS = Symbol('EVENT_STREAM_SCRIPTS');
export const SESSION_EVENT_BROADCASTER = Symbol('SESSION_EVENT_BROADCASTER');
export const SESSION_EVENT_CONSUMER = Symbol('SESSION_EVENT_CONSUMER');
export const SESSION_EVENT_LOADER = Symbol('SESSION_EVENT_LOADER');
export const SESSION_EVENT_TRIMMER = Symbol('SESSION_EVENT_TRIMMER');
