import {
  COUNTERS,
  GAUGES,
  HISTOGRAMS,
  type Instrument,
  OBSERVED_COUNTERS,
  STATES,
} from '../../../packages/session-opentelemetry/src/metrics/instrument-table.js';

/**
 * Who writes the names. OpenTelemetry's exporter for Node.js leaves out units; its Collector, and Prometheus as a
 * receiver of OTLP, append them.
 */
export const WRITERS = ['exporter', 'collector'] as const;
export type Writer = (typeof WRITERS)[number];

/** What Prometheus keeps of an instrument. */
export interface Metric {
  readonly name: string;
  readonly kind: 'gauge' | 'counter' | 'histogram';
  readonly labels: readonly string[];
  /** That of a gauge: seconds, or a number of things. */
  readonly isTime: boolean;
}

const UNITS = new Map([
  ['s', '_seconds'],
  ['By', '_bytes'],
]);

/** The metrics of all instruments, by the names that a writer gives them. */
export function metricsOf(writer: Writer): Metric[] {
  const all = (instruments: readonly Instrument[], kind: Metric['kind']) =>
    instruments.map((instrument) => metricOf(instrument, kind, writer));
  return [
    ...all(Object.values(HISTOGRAMS), 'histogram'),
    ...all([...Object.values(COUNTERS), ...Object.values(OBSERVED_COUNTERS)], 'counter'),
    ...all([...Object.values(GAUGES), ...Object.values(STATES)], 'gauge'),
  ];
}

function metricOf({ name, unit, attributes }: Instrument, kind: Metric['kind'], writer: Writer): Metric {
  const suffixes = [writer === 'collector' ? UNITS.get(unit) : '', kind === 'counter' ? '_total' : ''];
  return {
    name: underscored(name) + suffixes.join(''),
    kind,
    labels: ['nest_session.namespace', ...attributes].map(underscored),
    isTime: unit === 's',
  };
}

function underscored(name: string): string {
  return name.replaceAll('.', '_');
}

/** The names of the series of a metric, each with its labels. */
export function seriesNames({ name, kind, labels }: Metric): (readonly [name: string, labels: readonly string[]])[] {
  if (kind !== 'histogram') return [[name, labels]];
  return [
    [`${name}_bucket`, [...labels, 'le']],
    [`${name}_count`, labels],
    [`${name}_sum`, labels],
  ];
}

/** A query that takes both spellings, as it is for one of them. */
export function queryFor(writer: Writer, query: string): string {
  const unit = writer === 'collector' ? '$2' : '';
  return query.replaceAll(/\{__name__=~"(\w+)\((_\w+)\)\?(\w*)"(?:, )?/g, `$1${unit}$3{`);
}
