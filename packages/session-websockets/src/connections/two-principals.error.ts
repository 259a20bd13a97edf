/** Thrown for a client whose handshake presents the sessions of two users, with `security: 'strict'`. */
export class TwoPrincipalsError extends Error {}
