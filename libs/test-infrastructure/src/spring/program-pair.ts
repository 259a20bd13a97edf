import { freePort, RedisServer } from '@nest-session/testing';
import { BoundProcess } from '../processes/bound.process.js';
import { SpringProgram } from './spring-program.js';

/**
 * A program of NestJS, `src/main.js` in the working directory, and one of Spring Boot, in the folder `java`, on one
 * Redis.
 */
export class ProgramPair {
  private constructor(
    private readonly redis: RedisServer,
    readonly spring: SpringProgram,
    readonly nest: BoundProcess,
    /** Of NestJS, such as `http://127.0.0.1:41234`. */
    readonly nestOrigin: string,
  ) {}

  /** @throws Error with what a program has printed, when it does not start */
  static async start(): Promise<ProgramPair> {
    const [redis, port] = [await RedisServer.start(), `${await freePort()}`];
    const nest = BoundProcess.start([process.execPath, 'src/main.js'], { PORT: port, REDIS_URL: redis.url });
    const spring = await SpringProgram.start('java', { 'spring.data.redis.url': redis.url });
    await nest.printed(/(successfully started)/);
    return new ProgramPair(redis, spring, nest, `http://127.0.0.1:${port}`);
  }

  async stop(): Promise<void> {
    await Promise.all([this.spring.stop(), this.nest.stop()]);
    await this.redis.stop();
  }
}
