import { generateKeyPairSync, sign } from 'node:crypto';

/** A key, and a certificate that nobody vouches for, of no name: for clients that do not look at it. */
export function selfSignedCertificate(): { readonly key: string; readonly cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = der(SEQUENCE, oid(ECDSA_WITH_SHA256));
  const name = der(SEQUENCE);
  const validity = der(SEQUENCE, der(UTC_TIME, '250101000000Z'), der(UTC_TIME, '491231235959Z'));
  const publicKeyInfo = publicKey.export({ type: 'spki', format: 'der' });
  // RFC 5280, 4.1: without a version it is version 1, which has no extensions.
  const content = der(SEQUENCE, der(INTEGER, [1]), algorithm, name, validity, name, publicKeyInfo);
  const signature = der(BIT_STRING, [0], sign('sha256', content, privateKey));
  const certificate = der(SEQUENCE, content, algorithm, signature).toString('base64');
  const lines = certificate.match(/.{1,64}/g)!.join('\n');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  };
}

const [INTEGER, BIT_STRING, OBJECT_IDENTIFIER, UTC_TIME, SEQUENCE] = [0x02, 0x03, 0x06, 0x17, 0x30] as const;
const ECDSA_WITH_SHA256 = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];

function oid(bytes: readonly number[]): Buffer {
  return der(OBJECT_IDENTIFIER, bytes);
}

function der(tag: number, ...contents: (string | readonly number[] | Buffer)[]): Buffer {
  const content = Buffer.concat(contents.map((each) => Buffer.from(each as Buffer)));
  // In as few bytes as possible: nothing here is longer than two of them can say.
  const bytes = [content.length >> 8, content.length & 0xff].slice(content.length > 0xff ? 0 : 1);
  const length = content.length < 0x80 ? bytes : [0x80 + bytes.length, ...bytes];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}
