/**
 * Milliseconds for which a store knows that every session of a principal was ended: no request that signs somebody in
 * takes longer.
 */
export const LONGEST_REQUEST = 600_000;
