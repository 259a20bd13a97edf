import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, freePort } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { type CertificateAuthority, TlsRedis } from './tls.redis.js';

/** A master and its Sentinel, which speak only TLS. Their certificates are valid for `localhost`. */
export class TlsSentinel {
  private constructor(
    readonly master: TlsRedis,
    readonly port: number,
    private readonly child: ChildProcess,
    private readonly home: string,
  ) {}

  /** `name`: of the master. `login`: the only user whom the Sentinel takes; undefined: anybody. */
  static async start(
    authority: CertificateAuthority,
    name: string,
    login?: { readonly username: string; readonly password: string },
  ): Promise<TlsSentinel> {
    const master = await TlsRedis.start({ authority, verifiesClients: false });
    const home = await mkdtemp(join(tmpdir(), 'sentinel-tls-'));
    const port = await freePort();
    const { cert, key } = await authority.ofServer('localhost');
    const files = { ca: authority.own.cert, cert, key };
    for (const [file, text] of Object.entries(files)) await writeFile(join(home, file), text, { mode: 0o600 });
    const config = [
      'port 0',
      `tls-port ${port}`,
      'bind 127.0.0.1',
      `dir ${home}`,
      `tls-ca-cert-file ${join(home, 'ca')}`,
      `tls-cert-file ${join(home, 'cert')}`,
      `tls-key-file ${join(home, 'key')}`,
      'tls-auth-clients no',
      // To the master as well.
      'tls-replication yes',
      ...(login ? ['user default off', `user ${login.username} on >${login.password} allchannels +@all`] : []),
      `sentinel monitor ${name} 127.0.0.1 ${master.port} 1`,
    ];
    await writeFile(join(home, 'sentinel.conf'), config.join('\n'));
    // The shell ends it when this process has ended, which closes its standard input.
    const script = '"$0" "$1" --sentinel >/dev/null & read -r _; kill -9 $!';
    const program = process.env['REDIS_SERVER'] ?? 'redis-server';
    const child = spawn('/bin/sh', ['-c', script, program, join(home, 'sentinel.conf')], {
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    const tls = { ca: authority.own.cert, servername: 'localhost' };
    const client = new Redis(port, { ...login, tls, retryStrategy: () => 50 });
    client.on('error', () => undefined);
    await eventually(async () => ((await client.call('SENTINEL', 'MASTER', name)) as string[]).includes('master'), {
      timeout: 60_000,
    });
    client.disconnect();
    return new TlsSentinel(master, port, child, home);
  }

  async stop(): Promise<void> {
    const ended = once(this.child, 'exit');
    this.child.stdin!.end();
    await ended;
    await rm(this.home, { recursive: true, force: true });
    await this.master.stop();
  }
}
