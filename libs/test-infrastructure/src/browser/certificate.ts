import { createHash, X509Certificate } from 'node:crypto';
import { generate } from 'selfsigned';

/** A key and a self-signed certificate, for clients that do not verify it; `hosts`: names of this machine. */
export async function selfSignedCertificate(
  hosts: readonly string[] = ['localhost'],
): Promise<{ readonly key: string; readonly cert: string }> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: hosts[0]! }], {
    keyType: 'ec',
    extensions: [{ name: 'subjectAltName', altNames: hosts.map((value) => ({ type: 2, value })) }],
  });
  return { key, cert };
}

/** What `--ignore-certificate-errors-spki-list` of Chromium takes: the hash of the public key of a certificate. */
export function keyHashOf(cert: string): string {
  const key = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(key).digest('base64');
}
