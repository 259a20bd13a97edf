import { createPublicKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isRecord } from '../option-reading/option.reader.js';

/** The algorithms by which browsers sign: on P-256 and, of older hardware, RSA. */
export const ALGORITHMS = ['ES256', 'RS256'] as const;

export type PublicKey =
  | { readonly kty: 'EC'; readonly crv: 'P-256'; readonly x: string; readonly y: string }
  | { readonly kty: 'RSA'; readonly n: string; readonly e: string };

export interface DeviceProof {
  readonly challenge: string;
  /** The key that it brings: at a registration only. */
  readonly publicKey: PublicKey | undefined;
  readonly algorithm: (typeof ALGORITHMS)[number];
  readonly signed: string;
  readonly signature: Buffer;
}

const HEADER = 'secure-session-response';
/** Characters. A proof with an RSA key of 4096 bits takes less than a third. */
const LONGEST = 8192;

export function hasProof({ headers }: IncomingMessage): boolean {
  return headers[HEADER] !== undefined;
}

/**
 * Reads the proof of a request: a JWT. Unknown claims and fields are ignored, because browsers differ in them.
 * Undefined for anything else, also for two proofs.
 */
export function proofOf({ headers }: IncomingMessage): DeviceProof | undefined {
  const text = headers[HEADER];
  if (typeof text !== 'string' || text.length > LONGEST) return undefined;
  const [, head = '', body = '', signature = ''] = /^"?([\w-]+)\.([\w-]+)\.([\w-]+)"?$/.exec(text.trim()) ?? [];
  const [{ alg, typ, jwk }, { jti }] = [decoded(head), decoded(body)];
  const algorithm = ALGORITHMS.find((each) => each === alg);
  if (!algorithm || typ !== 'dbsc+jwt' || typeof jti !== 'string') return undefined;
  const publicKey = jwk === undefined ? undefined : publicKeyOf(jwk);
  if (jwk !== undefined && algorithmOf(publicKey) !== algorithm) return undefined;
  const signed = `${head}.${body}`;
  return { challenge: jti, publicKey, algorithm, signed, signature: Buffer.from(signature, 'base64url') };
}

export function isSignedBy({ algorithm, signed, signature }: DeviceProof, key: PublicKey): boolean {
  // By the algorithm of the key, whatever the proof says.
  if (algorithmOf(key) !== algorithm) return false;
  try {
    return verify('sha256', Buffer.from(signed), { key: imported(key), dsaEncoding: 'ieee-p1363' }, signature);
  } catch {
    return false;
  }
}

export function algorithmOf(key: PublicKey | undefined): DeviceProof['algorithm'] | undefined {
  return key && (key.kty === 'EC' ? 'ES256' : 'RS256');
}

/** The key, spelled in one way; undefined for what is no key, or a weak one. */
function publicKeyOf(jwk: unknown): PublicKey | undefined {
  const key = isRecord(jwk) ? known(jwk) : undefined;
  if (!key) return undefined;
  try {
    const object = imported(key);
    const { modulusLength = 0, publicExponent } = object.asymmetricKeyDetails ?? {};
    const isStrong = key.kty === 'EC' || (modulusLength >= 2048 && publicExponent === 65_537n);
    return isStrong ? known({ ...object.export({ format: 'jwk' }) }) : undefined;
  } catch {
    // Such as a point that is not on the curve.
    return undefined;
  }
}

function known({ kty, crv, x, y, n, e }: Record<string, unknown>): PublicKey | undefined {
  const isText = (...texts: unknown[]) => texts.every((text) => typeof text === 'string');
  if (kty === 'EC' && crv === 'P-256' && isText(x, y)) return { kty, crv, x, y } as PublicKey;
  return kty === 'RSA' && isText(n, e) ? ({ kty, n, e } as PublicKey) : undefined;
}

function imported(key: PublicKey): KeyObject {
  return createPublicKey({ key: { ...key } as JsonWebKey, format: 'jwk' });
}

function decoded(part: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString());
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}
