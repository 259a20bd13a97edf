import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { isSignedBy, type PublicKey, proofOf } from '../../src/device/device-jwt.js';

const [ec, otherEc] = [0, 1].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }));
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });

interface Parts {
  readonly head?: object;
  readonly body?: object;
  /** Signs the text of head and body. */
  readonly by?: (signed: string) => Buffer;
}

const jwkOf = (key: KeyObject): Record<string, unknown> => ({ ...key.export({ format: 'jwk' }) });
const byEc = (signed: string) =>
  sign('sha256', Buffer.from(signed), { key: ec!.privateKey, dsaEncoding: 'ieee-p1363' });
const byRsa = (signed: string) => sign('sha256', Buffer.from(signed), rsa.privateKey);

const encoded = (part: object | string) =>
  Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url');

function jwt({ head = {}, body = {}, by = byEc }: Parts = {}): string {
  const whole = { alg: 'ES256', typ: 'dbsc+jwt', ...head };
  const signed = `${encoded(whole)}.${encoded({ jti: 'challenge', ...body })}`;
  return `${signed}.${by(signed).toString('base64url')}`;
}

const read = (text: unknown) => proofOf({ headers: { 'secure-session-response': text } } as never);
const key = (jwk: object) => read(jwt({ head: { jwk } }))?.publicKey;
const ecKey = jwkOf(ec!.publicKey);
const rsaKey = jwkOf(rsa.publicKey);

describe('a proof', () => {
  it('has the challenge that it answers, and the key that it brings', () => {
    expect(read(jwt())).toMatchObject({ challenge: 'challenge', publicKey: undefined, algorithm: 'ES256' });
    expect(read(jwt({ head: { jwk: ecKey } }))?.publicKey).toEqual(ecKey);
    const proof = read(jwt({ head: { alg: 'RS256', jwk: rsaKey }, by: byRsa }));
    expect(proof).toMatchObject({ algorithm: 'RS256', publicKey: rsaKey });
  });

  it('is read with quotes around it, as a string of a structured field', () => {
    const text = jwt();
    expect(read(`"${text}"`)).toEqual(read(text));
  });

  it('may have claims and fields that are not known here', () => {
    const body = { iat: 1, exp: 1, aud: 'https://other.example', sub: null, authorization: '<script>', key: ecKey };
    expect(read(jwt({ head: { kid: '../x', cty: 'x' }, body }))?.challenge).toBe('challenge');
  });

  const parts = jwt().split('.');
  it.each([
    ['nothing', undefined],
    ['an empty text', ''],
    ['a text', 'hello'],
    ['two parts', parts.slice(0, 2).join('.')],
    ['four parts', [...parts, 'a'].join('.')],
    ['an empty signature', [...parts.slice(0, 2), ''].join('.')],
    ['padding', `${jwt()}=`],
    ['two proofs in one header', `${jwt()}, ${jwt()}`],
    ['two headers', [jwt(), jwt()]],
    ['a head that is no JSON', [encoded('{'), ...parts.slice(1)].join('.')],
    ['a head that is a list', [encoded('["ES256"]'), ...parts.slice(1)].join('.')],
    ['a body that is null', [parts[0], encoded('null'), parts[2]].join('.')],
    ['100,000 brackets', [parts[0], encoded('['.repeat(5000)), parts[2]].join('.')],
    ['no challenge', jwt({ body: { jti: undefined } })],
    ['a challenge that is a list', jwt({ body: { jti: ['challenge'] } })],
    ['another type', jwt({ head: { typ: 'JWT' } })],
    ['no algorithm', jwt({ head: { alg: undefined } })],
    ['`none`', jwt({ head: { alg: 'none' } })],
    ['`None`', jwt({ head: { alg: 'None' } })],
    ['`HS256`', jwt({ head: { alg: 'HS256' } })],
    ['`ES384`', jwt({ head: { alg: 'ES384' } })],
    ['`PS256`', jwt({ head: { alg: 'PS256' } })],
    ['a list of algorithms', jwt({ head: { alg: ['ES256'] } })],
    ['more than 8 KiB', jwt({ body: { padding: 'a'.repeat(8192) } })],
  ])('is not %s', (_, text) => {
    expect(read(text)).toBeUndefined();
  });

  it('is refused in no time when it is as long as all headers together', () => {
    const long = jwt({ body: { padding: 'a'.repeat(100_000) } });
    const begun = performance.now();
    for (let i = 0; i < 1000; i++) expect(read(long)).toBeUndefined();
    // 10 ms each would take ten seconds.
    expect(performance.now() - begun).toBeLessThan(5000);
  });
});

describe('the key of a proof', () => {
  it('is kept without what else comes along, spelled in one way', () => {
    expect(key({ ...ecKey, d: 'secret', x5c: ['a'], use: 'enc', key_ops: ['sign'], kid: 'a', alg: 'none' })).toEqual(
      ecKey,
    );
    // A leading zero is the same number.
    const padded = Buffer.concat([Buffer.alloc(100), Buffer.from(String(ecKey['x']), 'base64url')]);
    expect(key({ ...ecKey, x: padded.toString('base64url') })).toEqual(ecKey);
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['a text', 'key'],
    ['a list', [ecKey]],
    ['a symmetric one', { kty: 'oct', k: 'c2VjcmV0' }],
    ['one of another curve', jwkOf(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey)],
    ['one of secp256k1', jwkOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey)],
    ['one of Ed25519', jwkOf(generateKeyPairSync('ed25519').publicKey)],
    ['one that names another curve', { ...ecKey, crv: 'P-384' }],
    ['a point that is not on the curve', { ...ecKey, y: ecKey['x'] }],
    ['the point at infinity', { ...ecKey, x: 'AA', y: 'AA' }],
    ['a point with a coordinate that is missing', { ...ecKey, y: undefined }],
    ['a point with a number', { ...ecKey, y: 1 }],
    ['a short coordinate', { ...ecKey, x: 'AQ' }],
    ['an empty coordinate', { ...ecKey, x: '' }],
    ['a long coordinate', { ...ecKey, x: `${String(ecKey['x'])}${'A'.repeat(1000)}` }],
  ])('is not %s', (_, jwk) => {
    expect(read(jwt({ head: { jwk } }))).toBeUndefined();
  });

  it.each<[string, object]>([
    ['of 1024 bits', jwkOf(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey)],
    ['with an exponent of 1', { ...rsaKey, e: 'AQ' }],
    ['with an exponent of 3', jwkOf(generateKeyPairSync('rsa', { modulusLength: 2048, publicExponent: 3 }).publicKey)],
    ['with an exponent of 0', { ...rsaKey, e: 'AA' }],
    ['without a modulus', { ...rsaKey, n: '' }],
  ])('of RSA is not one %s', (_, jwk) => {
    expect(read(jwt({ head: { alg: 'RS256', jwk }, by: byRsa }))).toBeUndefined();
  });

  it('fits the algorithm', () => {
    expect(read(jwt({ head: { alg: 'RS256', jwk: ecKey }, by: byRsa }))).toBeUndefined();
    expect(read(jwt({ head: { alg: 'ES256', jwk: rsaKey } }))).toBeUndefined();
  });
});

describe('a signature', () => {
  const isSigned = (text: string, publicKey: object) => isSignedBy(read(text)!, publicKey as PublicKey);

  it('is that of the key', () => {
    expect(isSigned(jwt(), ecKey)).toBe(true);
    expect(isSigned(jwt({ head: { alg: 'RS256' }, by: byRsa }), rsaKey)).toBe(true);
    expect(isSigned(jwt(), jwkOf(otherEc!.publicKey))).toBe(false);
  });

  it('is of what was sent', () => {
    const [head, , signature] = jwt().split('.');
    expect(isSigned([head, encoded({ jti: 'other' }), signature].join('.'), ecKey)).toBe(false);
  });

  it.each<[string, (signed: string) => Buffer]>([
    ['in DER', (signed) => sign('sha256', Buffer.from(signed), ec!.privateKey)],
    ['of one byte', () => Buffer.alloc(1)],
    ['of 63 bytes', (signed) => byEc(signed).subarray(0, 63)],
    ['of 65 bytes', (signed) => Buffer.concat([byEc(signed), Buffer.alloc(1)])],
    ['of zeros', () => Buffer.alloc(64)],
    ['of SHA-512', (signed) => sign('sha512', Buffer.from(signed), { key: ec!.privateKey, dsaEncoding: 'ieee-p1363' })],
    ['by the public key as a secret', (signed) => createHmac('sha256', pemOf(ecKey)).update(signed).digest()],
  ])('is not one %s', (_, by) => {
    expect(isSigned(jwt({ by }), ecKey)).toBe(false);
  });

  it('is by the algorithm of the key, whatever the proof says', () => {
    expect(isSigned(jwt({ head: { alg: 'RS256' }, by: byRsa }), ecKey)).toBe(false);
    expect(isSigned(jwt({ head: { alg: 'RS256' } }), ecKey)).toBe(false);
    expect(isSigned(jwt({ head: { alg: 'ES256' }, by: byRsa }), rsaKey)).toBe(false);
  });
});

function pemOf(jwk: Record<string, unknown>): string {
  return String(createPublicKey({ key: jwk as never, format: 'jwk' }).export({ format: 'pem', type: 'spki' }));
}
