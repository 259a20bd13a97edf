/**
 * The `commandTimeout` of applications under test: longer than this process or Redis stands still on a machine that is
 * slow. A test of what comes of no answer sets its own.
 */
export const PATIENCE = '30s';
