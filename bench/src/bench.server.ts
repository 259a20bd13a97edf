import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import type { AdapterName, ApplicationName } from './requests.applications.js';

const MAIN = fileURLToPath(new URL('./server.main.js', import.meta.url));
const CONNECTIONS = 16;

/** An application in a process of its own, and the costs of requests to it. */
export class BenchServer {
  readonly #process: ChildProcess;
  readonly #origin: string;

  static async start(application: ApplicationName, adapter: AdapterName): Promise<BenchServer> {
    const child = fork(MAIN, [application, adapter]);
    const exited = once(child, 'exit').then(([code]) => Promise.reject(new Error(`A server ended: ${code}`)));
    const [origin] = (await Promise.race([once(child, 'message'), exited])) as [string];
    exited.catch(() => undefined);
    return new BenchServer(child, origin);
  }

  private constructor(child: ChildProcess, origin: string) {
    this.#process = child;
    this.#origin = origin;
  }

  /** The cookie that a route sets, for later requests. */
  async cookieOf(path: string): Promise<string> {
    const { headers } = await fetch(this.#origin + path);
    return headers
      .getSetCookie()
      .map((cookie) => cookie.slice(0, cookie.indexOf(';')))
      .join('; ');
  }

  /**
   * Sends this many requests and resolves to the microseconds of processor time that the server used for each. Unlike
   * latencies, they depend neither on the load of the machine nor on the rate of the requests.
   */
  async costOf(amount: number, path: string, cookie?: string): Promise<number> {
    const before = await this.#processorTime();
    const { '2xx': answered, errors } = await autocannon({
      url: this.#origin + path,
      connections: CONNECTIONS,
      amount,
      // autocannon checks only at this interval whether it is done.
      sampleInt: 20,
      headers: cookie === undefined ? {} : { cookie },
    });
    if (answered !== amount || errors > 0) throw new Error(`${path}: ${amount - answered} requests failed`);
    return ((await this.#processorTime()) - before) / amount;
  }

  stop(): void {
    this.#process.disconnect();
  }

  async #processorTime(): Promise<number> {
    this.#process.send('?');
    const [{ user, system }] = (await once(this.#process, 'message')) as [NodeJS.CpuUsage];
    return user + system;
  }
}
