import { randomUUID } from 'node:crypto';
import { eventually, type RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { monitorOf } from './monitor-of.js';

/** The commands that a node gets from others than the test, those that scripts call not included. */
export class SentCommands {
  readonly #times: { readonly name: string; readonly at: number }[] = [];
  /** The mark of the test that MONITOR has shown last. */
  #mark: string | undefined;

  private constructor(
    private readonly node: Redis,
    private readonly monitor: Redis,
  ) {}

  static async on(server: RedisServer): Promise<SentCommands> {
    const node = new Redis(server.url);
    const own = /\baddr=(\S+)/.exec(String(await node.client('INFO')))?.[1];
    const sent = new SentCommands(node, await monitorOf(new Redis(server.url, { lazyConnect: true })));
    sent.monitor.on('monitor', (time: string, [name = '', argument]: string[], source: string) => {
      if (source === own) sent.#mark = argument;
      else if (source !== 'lua') sent.#times.push({ name: name.toLowerCase(), at: Number(time) });
    });
    return sent;
  }

  /** Epoch seconds by the clock of the node. All commands until then have been counted. */
  async now(): Promise<number> {
    const mark = randomUUID();
    const [seconds, microseconds] = await this.node.time();
    await this.node.echo(mark);
    await eventually(() => this.#mark === mark);
    return Number(seconds) + Number(microseconds) / 1e6;
  }

  /** The names of those in a time. */
  between(begin: number, end: number): string[] {
    return this.#times.filter(({ at }) => at >= begin && at < end).map(({ name }) => name);
  }

  close(): void {
    this.node.disconnect();
    this.monitor.disconnect();
  }
}
