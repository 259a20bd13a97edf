/**
 * The `commandTimeout` of applications under test: longer than a stall of this process or Redis on a slow machine. A
 * test of missing replies sets its own.
 */
export const PATIENCE = '30s';
