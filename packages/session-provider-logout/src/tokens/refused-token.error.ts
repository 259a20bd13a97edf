/** Why a token is refused: the reason of the security event, and a sentence for the provider that quotes nothing. */
export const REFUSALS = {
  malformed: 'The request does not carry one signed JWT',
  'too-large': 'The body is too large',
  'foreign-type': 'The Content-Type is another one',
  'unknown-issuer': 'The issuer is not known here',
  'not-accepted': 'This issuer may not send this here',
  authorization: 'The Authorization header is not that of the stream',
  audience: 'The token is for another audience',
  signature: 'The signature or its algorithm is not accepted',
  'unknown-key': 'The key is not one of the issuer',
  encrypted: 'The token is encrypted, and there is no key for it',
  expired: 'The token is too old, or from the future',
  claims: 'A claim is missing or has another form',
  confused: 'The token is one for something else',
  mixed: 'The session is one of another subject',
} as const;

export type Refusal = keyof typeof REFUSALS;

/** The token will not be accepted later either. */
export class RefusedTokenError extends Error {
  /** `issuer`: a configured one that the token names. */
  constructor(
    readonly reason: Refusal,
    readonly issuer?: string,
  ) {
    super(REFUSALS[reason]);
    this.name = 'RefusedTokenError';
  }
}

/** Nobody can tell now. The provider may send it again. */
export class UnavailableError extends Error {
  constructor(
    message: string,
    /** Seconds. */
    readonly retryAfter = 5,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
    this.name = 'UnavailableError';
  }
}
