import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, RedisServer } from '@nest-session/testing';
import { generate } from 'selfsigned';

/** A certificate and its key, as PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Signs certificates, and nobody knows it but who is told. */
export class CertificateAuthority {
  private constructor(readonly own: Certificate) {}

  static async create(name: string): Promise<CertificateAuthority> {
    const extensions = [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, critical: true },
    ] as const;
    return new CertificateAuthority(await certificate(name, { extensions: [...extensions] }));
  }

  /** A certificate of a server with this host name, and with no address. */
  ofServer(host: string): Promise<Certificate> {
    const isFor = { name: 'extKeyUsage', serverAuth: true } as const;
    const names = { name: 'subjectAltName' as const, altNames: [{ type: 2 as const, value: host }] };
    return certificate(host, { ca: this.own, extensions: [isFor, names] });
  }

  ofClient(name: string): Promise<Certificate> {
    return certificate(name, { ca: this.own, extensions: [{ name: 'extKeyUsage', clientAuth: true }] });
  }
}

async function certificate(name: string, options: Parameters<typeof generate>[1]): Promise<Certificate> {
  const rules = { keyType: 'ec', algorithm: 'sha256' } as const;
  const { private: key, cert } = await generate([{ name: 'commonName', value: name }], { ...rules, ...options });
  return { key, cert };
}

export interface TlsRedisOptions {
  readonly authority: CertificateAuthority;
  /** Whether clients need a certificate of the same authority. */
  readonly verifiesClients: boolean;
}

/** A private Redis with a port for TLS and no other. Its certificate is valid for `localhost`, not for 127.0.0.1. */
export class TlsRedis {
  private constructor(
    private readonly server: RedisServer,
    private readonly folder: string,
    readonly port: number,
  ) {}

  static async start({ authority, verifiesClients }: TlsRedisOptions): Promise<TlsRedis> {
    const folder = await mkdtemp(join(tmpdir(), 'redis-tls-'));
    const { cert, key } = await authority.ofServer('localhost');
    const files = { 'tls-ca-cert-file': authority.own.cert, 'tls-cert-file': cert, 'tls-key-file': key };
    const port = await freePort();
    const args = ['--port', '0', '--tls-port', `${port}`, '--tls-auth-clients', verifiesClients ? 'yes' : 'no'];
    for (const [name, text] of Object.entries(files)) {
      const file = join(folder, name);
      await writeFile(file, text, { mode: 0o600 });
      args.push(`--${name}`, file);
    }
    return new TlsRedis(await RedisServer.start({ args, port }), folder, port);
  }

  get url(): string {
    return `rediss://localhost:${this.port}`;
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await rm(this.folder, { recursive: true });
  }
}
