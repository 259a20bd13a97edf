import { TcpProxy } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App, type AppOptions } from './app.fixture.js';
import { VISIT_INDEXES, VisitModule } from './visit.routes.js';

/** A Redis of the suite's own, and a proxy between it and applications with the routes of visits. */
export class VisitedRedis {
  private constructor(
    private readonly server: RedisServer,
    readonly proxy: TcpProxy,
    /** Not through the proxy. */
    readonly client: Redis,
  ) {}

  static async start(): Promise<VisitedRedis> {
    const server = await RedisServer.start();
    return new VisitedRedis(server, await TcpProxy.start({ port: server.port }), new Redis(server.url));
  }

  /** Its namespace is the name of the adapter. */
  startApp(adapter: NonNullable<AppOptions['adapter']>): Promise<App> {
    return App.start({
      adapter,
      imports: [VisitModule],
      session: { indexes: VISIT_INDEXES },
      redis: { url: this.proxy.url, namespace: adapter, notifications: 'off', commandTimeout: '1m' },
      handlers: false,
    });
  }

  async stop(): Promise<void> {
    await this.proxy.stop();
    this.client.disconnect();
    await this.server.stop();
  }
}
