/**
 * The reasons of outages, which OutageLog tells. Each command that waited for the connection fails with the same error,
 * as when Redis refuses the password: that need not be told again.
 */
export const toldReasons = new WeakSet<object>();
