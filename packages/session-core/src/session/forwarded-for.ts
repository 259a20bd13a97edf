/**
 * For how many milliseconds after a rotation a store forwards changes of the old id to the new one. Few requests that loaded
 * the session before take longer.
 */
export const FORWARDED_FOR = 60_000;
