/** Tokens of values. A class is its own token, unless there are several instances of it. */
export const REDIS_SESSION_OPTIONS = Symbol('REDIS_SESSION_OPTIONS');
export const REDIS_CONNECTIONS = Symbol('REDIS_CONNECTIONS');
/** What `SessionModule` provides, or an error that says that it is missing. */
export const SESSION_EVENT_DISPATCHER = Symbol('SESSION_EVENT_DISPATCHER');
export const SESSION_REPOSITORY_OPTIONS = Symbol('SESSION_REPOSITORY_OPTIONS');

export const CONSUMER_IDENTITY = Symbol('CONSUMER_IDENTITY');
export const DELIVERY_PACE = Symbol('DELIVERY_PACE');
export const EVENT_RULES = Symbol('EVENT_RULES');

/** A command is added to a connection, so each connection that runs scripts has its own. */
export const REQUEST_SESSION_SCRIPTS = Symbol('REQUEST_SESSION_SCRIPTS');
export const BACKGROUND_SESSION_SCRIPTS = Symbol('BACKGROUND_SESSION_SCRIPTS');
export const REQUEST_STREAM_SCRIPTS = Symbol('REQUEST_STREAM_SCRIPTS');
export const BACKGROUND_STREAM_SCRIPTS = Symbol('BACKGROUND_STREAM_SCRIPTS');

/** The key-space listener of the sessions; that of the application has the class as its token. */
export const SHADOW_KEY_LISTENER = Symbol('SHADOW_KEY_LISTENER');
