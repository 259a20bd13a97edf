import { freePort, RedisServer } from '@nest-session/testing';
import { BoundProcess } from '../processes/bound.process.js';
import { SpringProgram } from './spring-program.js';
import { StartedParts } from './started-parts.js';

/**
 * A program of NestJS, `src/main.js` in the working directory, and one of Spring Boot, in the folder `java`, on one
 * Redis.
 */
export class ProgramPair {
  private constructor(
    private readonly parts: StartedParts,
    readonly spring: SpringProgram,
    readonly nest: BoundProcess,
    /** Of NestJS, such as `http://127.0.0.1:41234`. */
    readonly nestOrigin: string,
  ) {}

  /** @throws Error with what a program has printed, when it does not start */
  static async start(): Promise<ProgramPair> {
    const parts = new StartedParts();
    try {
      const { url } = parts.add(await RedisServer.start(), (redis) => redis.stop());
      const port = `${await freePort()}`;
      const main = BoundProcess.start([process.execPath, 'src/main.js'], { PORT: port, REDIS_URL: url });
      const nest = parts.add(main, (started) => started.stop());
      const java = await SpringProgram.start('java', { 'spring.data.redis.url': url });
      const spring = parts.add(java, (started) => started.stop());
      await nest.printed(/(successfully started)/);
      return new ProgramPair(parts, spring, nest, `http://127.0.0.1:${port}`);
    } catch (error) {
      await parts.stop();
      throw error;
    }
  }

  stop(): Promise<void> {
    return this.parts.stop();
  }
}
