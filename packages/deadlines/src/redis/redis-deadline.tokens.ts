/**
 * Scripts are commands of a connection: those of calls by connection, those of background work on the one that it has.
 */
export const REQUEST_DEADLINE_SCRIPTS = Symbol('REQUEST_DEADLINE_SCRIPTS');
export const BACKGROUND_DEADLINE_SCRIPTS = Symbol('BACKGROUND_DEADLINE_SCRIPTS');
