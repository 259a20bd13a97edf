import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { Transform } from 'node:stream';
import type { RedisServer } from '@nest-session/testing';

/** Stands before a real Redis or Valkey, and says in its replies that its version is older than the oldest that works. */
export class OlderProxy {
  private constructor(
    readonly url: string,
    readonly stop: () => Promise<void>,
  ) {}

  static async start({ port }: RedisServer, listenAt = 0): Promise<OlderProxy> {
    const open = new Set<Socket>();
    const server = createServer((client) => {
      const redis = connect(port, '127.0.0.1');
      for (const socket of [client, redis]) {
        open.add(socket);
        socket
          .on('error', () => undefined)
          .on('close', () => {
            open.delete(socket);
            client.destroy();
            redis.destroy();
          });
      }
      client.pipe(redis).pipe(olderVersions()).pipe(client);
    });
    await once(server.listen(listenAt, '127.0.0.1'), 'listening');
    const { port: own } = server.address() as { port: number };
    return new OlderProxy(`redis://127.0.0.1:${own}`, async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    });
  }
}

/** As many bytes as before, because a reply begins with their number. A reply to INFO comes in one piece. */
function olderVersions(): Transform {
  return new Transform({
    transform(data: Buffer, _encoding, done) {
      const text = data.toString('latin1').replace(/(?<name>redis_version:)\d\.\d/g, '$<name>6.2');
      done(null, Buffer.from(text.replace(/(?<name>valkey_version:)\d\.\d/g, '$<name>7.1'), 'latin1'));
    },
  });
}
