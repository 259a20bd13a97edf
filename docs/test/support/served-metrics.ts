import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Metric, metricsOf, seriesNames, type Writer, WRITERS } from './prometheus-names.js';

/** What labels are, where that matters. A label without a value is none. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  error_type: ['', 'SessionStoreError'],
  nest_session_operation: ['load'],
  nest_session_outcome: ['any', 'missing', 'wrong-key', 'second-key'],
  nest_session_outage_policy: ['reject'],
  nest_session_notifications_state: ['silent'],
};
const LONG = 10_000;
const BUCKETS = ['0.1', '1', '+Inf'];

/**
 * The metrics of an application whose sessions are in every trouble that there is an alert for, at `/exporter` and
 * `/collector` of a port of 127.0.0.1. The namespace is that word, too. Counters rise with each scrape.
 */
export class ServedMetrics {
  readonly #scrapes = new Map<string, number>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer(({ url }, response) => {
      const writer = WRITERS.find((each) => url === `/${each}`)!;
      const scrapes = (this.#scrapes.get(writer) ?? 0) + 1;
      this.#scrapes.set(writer, scrapes);
      response.setHeader('content-type', 'text/plain; version=0.0.4').end(textOf(writer, scrapes));
    });
  }

  static async start(): Promise<ServedMetrics> {
    const metrics = new ServedMetrics();
    await once(metrics.#server.listen(0, '127.0.0.1'), 'listening');
    return metrics;
  }

  /** `host:port`. */
  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

function textOf(writer: Writer, scrapes: number): string {
  return metricsOf(writer)
    .map((metric) => `# TYPE ${metric.name} ${metric.kind}\n${linesOf(metric, writer, scrapes).join('\n')}\n`)
    .join('');
}

function linesOf(metric: Metric, writer: Writer, scrapes: number): string[] {
  const value = metric.kind === 'gauge' ? (metric.isTime ? LONG : 1) : scrapes;
  return seriesNames(metric).flatMap(([name, labels]) =>
    // All that a histogram has is slower than its last bound.
    labelSets(labels, writer).map((set) => `${name}{${set}} ${/le="\d/.test(set) ? 0 : value}`),
  );
}

function labelSets(labels: readonly string[], writer: Writer): string[] {
  const values = (label: string) => {
    if (label === 'nest_session_namespace') return [writer];
    return label === 'le' ? BUCKETS : (VALUES[label] ?? ['any']);
  };
  return labels.reduce(
    (sets, label) => sets.flatMap((set) => values(label).map((value) => `${set}${label}="${value}",`)),
    [''],
  );
}
