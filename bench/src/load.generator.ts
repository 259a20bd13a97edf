import { connect, type Socket } from 'node:net';
import { createHistogram } from 'node:perf_hooks';

export interface Load {
  readonly port: number;
  readonly path: string;
  /** Each sends its next request when it has the response to the last one. */
  readonly connections: number;
  /** Milliseconds during which requests are sent. */
  readonly duration: number;
  /** Connection n sends cookie n, and begins anew when there are fewer. Without any, no cookie is sent. */
  readonly cookies?: readonly string[];
}

export interface LoadFigures {
  readonly requests: number;
  /** Milliseconds from the first request to the last response. */
  readonly elapsed: number;
  /** Latencies in milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

/**
 * Sends requests over connections that stay open, without pipelining. A cookie that a response sets replaces the one
 * that the connection sends, so that a login can follow a login. It shares the processors with the server that it
 * measures, so it knows just enough of HTTP for responses with a Content-Length: it needs two thirds of the processor
 * time of autocannon.
 * @throws Error when a response is not a 200
 */
export async function generateLoad({ port, path, connections, duration, cookies = [] }: Load): Promise<LoadFigures> {
  const clients = Array.from({ length: connections }, (_, n) => new Client(port, path, cookies[n % cookies.length]));
  await Promise.all(clients.map((client) => client.connected));
  const latencies = createHistogram();
  const began = performance.now();
  const until = began + duration;
  try {
    await Promise.all(clients.map((client) => client.run(until, (latency) => latencies.record(latency))));
  } finally {
    for (const client of clients) client.close();
  }
  const elapsed = performance.now() - began;
  const [p50, p99] = [50, 99].map((percent) => latencies.percentile(percent) / 1e6) as [number, number];
  return { requests: latencies.count, elapsed, p50, p99 };
}

class Client {
  readonly connected: Promise<void>;
  readonly #socket: Socket;
  readonly #head: string;
  #request: string;

  constructor(port: number, path: string, cookie: string | undefined) {
    this.#head = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n`;
    this.#request = this.#with(cookie);
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true }).setEncoding('latin1');
    this.connected = new Promise((resolve, reject) => {
      this.#socket.once('connect', resolve).once('error', reject);
    });
  }

  run(until: number, record: (nanoseconds: number) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      let received = '';
      let sent = 0;
      const send = () => {
        sent = performance.now();
        this.#socket.write(this.#request, 'latin1');
      };
      this.#socket.once('close', () => reject(new Error('The server closed a connection')));
      this.#socket.on('data', (text: string) => {
        received += text;
        const response = parse(received);
        if (response === undefined) return;
        received = '';
        if (!response.head.startsWith('HTTP/1.1 200')) {
          reject(new Error(`${this.#head.split('\r\n')[0]}: ${response.head}`));
          return;
        }
        const now = performance.now();
        record(Math.max(1, Math.round((now - sent) * 1e6)));
        const [, cookie] = SET_COOKIE.exec(response.head) ?? [];
        if (cookie !== undefined) this.#request = this.#with(cookie);
        if (now < until) send();
        else resolve();
      });
      send();
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #with(cookie: string | undefined): string {
    return `${this.#head}${cookie === undefined ? '' : `Cookie: ${cookie}\r\n`}\r\n`;
  }
}

const LENGTH = /\r\ncontent-length: (\d+)/i;
const SET_COOKIE = /\r\nset-cookie: ([^;\r]+)/i;

/** The head of the response, or undefined while a part of the response is missing. */
function parse(text: string): { readonly head: string } | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const head = text.slice(0, end);
  const [, length] = LENGTH.exec(head) ?? [];
  if (length === undefined) throw new Error(`A response without Content-Length: ${head}`);
  return text.length >= end + 4 + Number(length) ? { head } : undefined;
}
