import { generate } from 'selfsigned';

/** A key and a self-signed certificate, for clients that do not verify it. */
export async function selfSignedCertificate(): Promise<{ readonly key: string; readonly cert: string }> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'localhost' }], { keyType: 'ec' });
  return { key, cert };
}
