import { type Attributes, context, metrics, trace } from '@opentelemetry/api';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import {
  type DataPoint,
  type Histogram,
  type MetricData,
  MeterProvider,
  MetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node';

/** A series of a metric: of a histogram, how many values it has and their sum. */
export interface Series {
  readonly attributes: Attributes;
  readonly value: number;
  readonly sum?: number | undefined;
}

/** The SDK of OpenTelemetry, as an application registers it. */
export class Sdk {
  readonly #reader = new CollectingReader();
  readonly #prometheus = new PrometheusExporter({ preventServerStart: true });
  readonly #meters = new MeterProvider({ readers: [this.#reader, this.#prometheus] });
  readonly #exporter = new InMemorySpanExporter();
  readonly #tracers = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.#exporter)] });

  private constructor() {
    this.#tracers.register();
    metrics.setGlobalMeterProvider(this.#meters);
  }

  static register(): Sdk {
    return new Sdk();
  }

  get spans(): ReadableSpan[] {
    return this.#exporter.getFinishedSpans();
  }

  /** The spans of a name. */
  named(name: string): ReadableSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  /** All metrics, as they are now. */
  async metrics(): Promise<MetricData[]> {
    const { resourceMetrics, errors } = await this.#reader.collect();
    if (errors.length > 0) throw new AggregateError(errors);
    return resourceMetrics.scopeMetrics.flatMap(({ metrics: each }) => each);
  }

  /** All series of a metric. */
  async series(name: string): Promise<Series[]> {
    const metric = (await this.metrics()).find(({ descriptor }) => descriptor.name === name);
    return ((metric?.dataPoints ?? []) as DataPoint<number | Histogram>[]).map(({ attributes, value }) =>
      typeof value === 'number' ? { attributes, value } : { attributes, value: value.count, sum: value.sum },
    );
  }

  /** The value of the series with exactly these attributes; 0 if there is none. */
  async value(name: string, attributes: Attributes): Promise<number> {
    const wanted = keyOf(attributes);
    const found = (await this.series(name)).find((series) => keyOf(series.attributes) === wanted);
    return found?.value ?? 0;
  }

  /** The page that Prometheus reads. */
  async page(): Promise<string> {
    return new Promise((resolve) => {
      const response = { statusCode: 0, setHeader: () => undefined, end: resolve };
      this.#prometheus.getMetricsRequestHandler({} as never, response as never);
    });
  }

  async stop(): Promise<void> {
    trace.disable();
    context.disable();
    metrics.disable();
    await this.#tracers.shutdown();
    await this.#meters.shutdown();
  }
}

/** The text of an attribute. */
export function textOf(attributes: Attributes, name: string): string {
  const value = attributes[name];
  return typeof value === 'string' ? value : 'none';
}

class CollectingReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {
    // It exports nothing.
  }

  protected override async onShutdown(): Promise<void> {
    // It holds nothing.
  }
}

function keyOf(attributes: Attributes): string {
  return JSON.stringify(Object.entries(attributes).sort(([a], [b]) => (a < b ? -1 : 1)));
}
