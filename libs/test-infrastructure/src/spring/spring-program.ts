import { BoundProcess } from '../processes/bound.process.js';
import { packagedJava } from './packaged-java.js';

// A test runs for seconds: the better compiler of Java would not pay.
const JAVA = ['java', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-jar'];

/** A running application of Spring Boot, on a free port. It ends with this process. */
export class SpringProgram {
  private constructor(
    readonly process: BoundProcess,
    /** Such as `http://127.0.0.1:41234`. */
    readonly origin: string,
  ) {}

  /**
   * Packages the application of a folder unless that has been done, and starts it with properties of Spring.
   * @throws Error with what it has printed, when it does not start
   */
  static async start(folder: string, properties: Readonly<Record<string, string>>): Promise<SpringProgram> {
    const jar = await packagedJava(folder);
    const all = { 'server.port': '0', 'spring.main.banner-mode': 'off', ...properties };
    const args = Object.entries(all).map(([name, value]) => `--${name}=${value}`);
    const java = BoundProcess.start([...JAVA, jar, ...args]);
    await java.printed(/: (Started) /);
    return new SpringProgram(java, `http://127.0.0.1:${await java.printed(/Tomcat started on port (\d+)/)}`);
  }

  /** What it has printed until now. */
  get output(): string {
    return this.process.output;
  }

  stop(): Promise<void> {
    return this.process.stop();
  }
}
