import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, freePort, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import type { CertificateAuthority } from './tls.redis.js';

/** A Cluster of one node, with a port for TLS and no other. Its certificate is valid for `localhost`. */
export class TlsCluster {
  private constructor(
    private readonly server: RedisServer,
    private readonly folder: string,
    readonly port: number,
  ) {}

  static async start(authority: CertificateAuthority): Promise<TlsCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'cluster-tls-'));
    const { cert, key } = await authority.ofServer('localhost');
    const files = { 'tls-ca-cert-file': authority.own.cert, 'tls-cert-file': cert, 'tls-key-file': key };
    const port = await freePort();
    const args = ['--port', '0', '--tls-port', `${port}`, '--tls-auth-clients', 'no', '--tls-cluster', 'yes'];
    args.push('--cluster-enabled', 'yes', '--cluster-port', `${await freePort()}`);
    args.push('--cluster-announce-ip', '127.0.0.1');
    for (const [name, text] of Object.entries(files)) {
      const file = join(folder, name);
      await writeFile(file, text, { mode: 0o600 });
      args.push(`--${name}`, file);
    }
    const server = await RedisServer.start({ args, port });
    const admin = new Redis(port, { tls: { ca: authority.own.cert, servername: 'localhost' } });
    await admin.cluster('ADDSLOTSRANGE' as never, 0, 16_383);
    await eventually(async () => expect(await admin.cluster('INFO')).toContain('cluster_state:ok'));
    admin.disconnect();
    return new TlsCluster(server, folder, port);
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await rm(this.folder, { recursive: true });
  }
}
