import type { NestExpressApplication } from '@nestjs/platform-express';
import { RedisServer } from '@nest-session/testing';

/** The demo on a private Redis. */
export class DemoApplication {
  private constructor(
    private readonly redis: RedisServer,
    private readonly app: NestExpressApplication,
    readonly origin: string,
  ) {}

  /** Once per test file: the module of the demo reads the environment when it is loaded. */
  static async start(): Promise<DemoApplication> {
    const redis = await RedisServer.start();
    try {
      Object.assign(process.env, { REDIS_URL: redis.url, COMMAND_TIMEOUT: '30s' });
      const { createDemo } = await import('../../src/create-demo.js');
      const app = await createDemo({ logger: false, abortOnError: false, forceCloseConnections: true });
      await app.listen(0, '127.0.0.1');
      return new DemoApplication(redis, app, await app.getUrl());
    } catch (error) {
      await redis.stop();
      throw error;
    }
  }

  /** A provider of the demo. */
  get<T>(provider: abstract new (...args: never[]) => T): T {
    return this.app.get<T>(provider);
  }

  async stop(): Promise<void> {
    await this.app.close();
    await this.redis.stop();
  }
}
