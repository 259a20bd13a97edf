/** `'standard'` allows plain http on a development machine. `'strict'` refuses at start what OWASP ASVS 5.0 forbids. */
export type SecurityLevel = 'standard' | 'strict';
