import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { generateLoad, type Load, type LoadFigures } from './load.generator.js';

const MAIN = fileURLToPath(new URL('./server.main.js', import.meta.url));

/** An application in a process of its own, and what requests cost it. */
export class BenchServer {
  readonly #process: ChildProcess;
  readonly #port: number;

  /** `subject`: the file `<subject>.applications.js` creates it. The arguments are handed on. */
  static async start(subject: string, ...args: readonly string[]): Promise<BenchServer> {
    const child = fork(MAIN, [subject, ...args]);
    const exited = once(child, 'exit').then(([code]) => Promise.reject(new Error(`A server ended: ${code}`)));
    const [port] = (await Promise.race([once(child, 'message'), exited])) as [number];
    exited.catch(() => undefined);
    return new BenchServer(child, port);
  }

  private constructor(child: ChildProcess, port: number) {
    this.#process = child;
    this.#port = port;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The cookie that a route sets, for later requests. */
  async cookieOf(path: string): Promise<string> {
    const response = await fetch(this.origin + path);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.headers
      .getSetCookie()
      .map((cookie) => cookie.slice(0, cookie.indexOf(';')))
      .join('; ');
  }

  async load(load: Omit<Load, 'port'>): Promise<LoadFigures & { readonly processorTime: number }> {
    const before = await this.processorTime();
    const figures = await generateLoad({ ...load, port: this.#port });
    return { ...figures, processorTime: (await this.processorTime()) - before };
  }

  /** What the server has taken so far, garbage collection included: microseconds. */
  async processorTime(): Promise<number> {
    this.#process.send('?');
    const [{ user, system }] = (await once(this.#process, 'message')) as [NodeJS.CpuUsage];
    return user + system;
  }

  stop(): void {
    this.#process.disconnect();
  }
}
