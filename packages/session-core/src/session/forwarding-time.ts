/**
 * Milliseconds for which a store forwards changes of an old id to the new one after a rotation: a request may have
 * loaded the session just before. `SessionChange` says which changes it forwards.
 */
export const FORWARDING_TIME = 60_000;
