import { createHash, timingSafeEqual } from 'node:crypto';
import {
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  jwtVerify,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
} from 'jose';
import type { ProviderMessage } from '../configuration/provider-logout.options.js';
import type { KnownIssuer, KnownIssuers } from './known-issuers.js';
import { RefusedTokenError, type Refusal, UnavailableError } from './refused-token.error.js';

/** A token that its issuer has signed for this application: what all kinds have. Times in seconds since the epoch. */
export interface VerifiedToken {
  readonly known: KnownIssuer;
  readonly issuer: string;
  readonly jti: string;
  readonly iat: number;
  readonly exp: number | undefined;
  readonly events: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

export const BACK_CHANNEL = 'http://schemas.openid.net/event/backchannel-logout';

/** What clocks may differ by, and for how long a logout token counts, in seconds. */
export const TOLERANCE = 60;
export const LONGEST_AGE = 3600;
const LONGEST_AGE_WITHOUT_EXPIRY = 120;

const TYPES: Readonly<Record<ProviderMessage, readonly unknown[]>> = {
  'back-channel': [undefined, 'jwt', 'logout+jwt'],
  events: [undefined, 'jwt', 'secevent+jwt'],
};

export class TokenVerifier {
  constructor(private readonly issuers: KnownIssuers) {}

  /**
   * Verifies a token that came as one kind of message. Nothing is requested before its issuer is a configured one.
   * @throws RefusedTokenError, or UnavailableError when nobody can tell now
   */
  async verify(token: string, kind: ProviderMessage, authorization: string | undefined): Promise<VerifiedToken> {
    const named = issuerIn(token);
    const known = await this.issuers.find(named);
    if (!known) throw new RefusedTokenError('unknown-issuer');
    const { config } = known;
    try {
      if (!config.accepts.includes(kind)) throw new RefusedTokenError('not-accepted');
      if (kind === 'events' && !isAuthorized(config.authorization, authorization))
        throw new RefusedTokenError('authorization');
      const { payload, typ } = await verified(token, known, kind);
      return { known, ...(kind === 'events' ? eventClaims(payload, typ) : logoutClaims(payload, typ, config.expiry)) };
    } catch (error) {
      if (error instanceof UnavailableError) throw error;
      const reason = error instanceof RefusedTokenError ? error.reason : reasonOf(error);
      throw new RefusedTokenError(reason, config.issuer);
    }
  }
}

/** @throws RefusedTokenError for what is no signed JWT */
function issuerIn(token: string): string {
  const parts = token.split('.').length;
  if (parts === 5) throw new RefusedTokenError('encrypted');
  try {
    const { iss } = decodeJwt(token);
    if (parts === 3 && typeof iss === 'string') return iss;
  } catch {
    // The next line says so.
  }
  throw new RefusedTokenError('malformed');
}

interface Verified {
  readonly payload: JWTPayload;
  readonly typ: unknown;
}

async function verified(token: string, { config, keys }: KnownIssuer, kind: ProviderMessage): Promise<Verified> {
  const options: JWTVerifyOptions = {
    issuer: config.issuer,
    audience: config.audience,
    algorithms: config.algorithms,
    clockTolerance: TOLERANCE,
    requiredClaims: ['iat', 'jti', 'events'],
    ...(kind === 'back-channel' && { maxTokenAge: LONGEST_AGE }),
  };
  const verifiedBy = (key: JWTVerifyGetKey) =>
    jwtVerify(token, key, options).catch((error: unknown) => {
      // What has happened does not expire. All else of the token was right.
      if (kind !== 'events' || !(error instanceof errors.JWTExpired)) throw error;
      return { payload: error.payload, protectedHeader: decodeProtectedHeader(token) };
    });
  const result = await verifiedBy(keys.find).catch(async (error: unknown) => {
    // The token does not say which key: it is signed by one of them, or by none.
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    for await (const key of error) {
      const found = await verifiedBy(() => key).catch((failure: unknown) => {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
      });
      if (found) return found;
    }
    throw new RefusedTokenError('signature');
  });
  const { typ } = result.protectedHeader;
  return { payload: result.payload, typ: typ?.toLowerCase().replace(/^application\//, '') };
}

function logoutClaims(payload: JWTPayload, typ: unknown, expiry: 'required' | 'optional') {
  const { sub, sid } = payload;
  const common = commonClaims(payload);
  const { iat, exp, events } = common;
  const isOther = !TYPES['back-channel'].includes(typ) || !(BACK_CHANNEL in events);
  // What passes as an ID token is none.
  if (isOther || 'nonce' in payload) throw new RefusedTokenError('confused');
  if (!isObject(events[BACK_CHANNEL])) throw new RefusedTokenError('claims');
  for (const name of [sub, sid]) if (name !== undefined && !isName(name)) throw new RefusedTokenError('claims');
  if (sub === undefined && sid === undefined) throw new RefusedTokenError('claims');
  if (exp === undefined && expiry === 'required') throw new RefusedTokenError('claims');
  if (exp === undefined && nowInSeconds() - iat > LONGEST_AGE_WITHOUT_EXPIRY + TOLERANCE)
    throw new RefusedTokenError('expired');
  return common;
}

function eventClaims(payload: JWTPayload, typ: unknown) {
  const common = commonClaims(payload);
  if (!TYPES.events.includes(typ) || BACK_CHANNEL in common.events) throw new RefusedTokenError('confused');
  if (common.iat > nowInSeconds() + TOLERANCE) throw new RefusedTokenError('expired');
  return common;
}

function commonClaims(payload: JWTPayload): Omit<VerifiedToken, 'known'> {
  const { iss, jti, iat, exp } = payload;
  const events = payload['events'];
  if (!isName(jti) || !isObject(events) || Object.keys(events).length === 0) throw new RefusedTokenError('claims');
  return { issuer: iss!, jti, iat: iat!, exp, events, claims: payload };
}

function isAuthorized(expected: string | undefined, given = ''): boolean {
  const [one, other] = [expected ?? given, given].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(one!, other!);
}

function reasonOf(error: unknown): Refusal {
  if (error instanceof errors.JWTExpired) return 'expired';
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'aud') return 'audience';
    if (error.claim === 'events') return 'confused';
    return (error.claim === 'iat' || error.claim === 'nbf') && error.reason === 'check_failed' ? 'expired' : 'claims';
  }
  if (error instanceof errors.JWKSNoMatchingKey) return 'unknown-key';
  if (error instanceof errors.JWTInvalid || error instanceof errors.JWSInvalid) return 'malformed';
  return 'signature';
}

export function nowInSeconds(): number {
  return Date.now() / 1000;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value names somebody or something. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
