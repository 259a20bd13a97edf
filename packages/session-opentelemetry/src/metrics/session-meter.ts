import { Injectable } from '@nestjs/common';
import {
  type Attributes,
  type Counter,
  type Histogram,
  type Meter,
  type MeterProvider,
  metrics,
} from '@opentelemetry/api';
import { SCOPE } from '../instrumentation/attributes.js';
import { harmless } from '../instrumentation/harmless.js';
import { COUNTERS, HISTOGRAMS } from './instrument-table.js';

/** Begins to observe with a meter, and returns what stops it. */
export type Observe = (meter: Meter) => () => void;

/**
 * The instruments of the SDK that is registered at the moment. The API gives instruments of the SDK that is registered
 * when they are made, and instruments that do nothing before: so they are made anew when there is another one.
 */
@Injectable()
export class SessionMeter {
  readonly #instruments = new Map<string, Histogram | Counter>();
  #provider: MeterProvider | undefined;
  #meter!: Meter;
  #observe: Observe | undefined;
  #stopObserving: (() => void) | undefined;

  /** Adds a value to a histogram. */
  record(key: keyof typeof HISTOGRAMS, value: number, attributes: Attributes): void {
    harmless(() => (this.#instrument(key, () => this.#histogram(key)) as Histogram).record(value, attributes));
  }

  /** Adds to a counter. */
  add(key: keyof typeof COUNTERS, value: number, attributes: Attributes): void {
    harmless(() => (this.#instrument(key, () => this.#counter(key)) as Counter).add(value, attributes));
  }

  /** Lets the SDK observe, also one that is registered later. */
  startObserving(observe: Observe): void {
    this.#observe = observe;
    this.#provider = undefined;
    this.followSdk();
  }

  /** Lets an SDK observe that has been registered since the last measurement. */
  followSdk(): void {
    harmless(() => this.#followProvider());
  }

  /** Lets no SDK observe any more. */
  stopObserving(): void {
    harmless(() => this.#stopObserving?.());
    this.#stopObserving = undefined;
    this.#observe = undefined;
  }

  #instrument(key: string, make: () => Histogram | Counter): Histogram | Counter {
    this.#followProvider();
    const known = this.#instruments.get(key) ?? make();
    this.#instruments.set(key, known);
    return known;
  }

  #histogram(key: keyof typeof HISTOGRAMS): Histogram {
    const { name, unit, description, buckets } = HISTOGRAMS[key];
    return this.#meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: [...buckets] } });
  }

  #counter(key: keyof typeof COUNTERS): Counter {
    const { name, unit, description } = COUNTERS[key];
    return this.#meter.createCounter(name, { unit, description });
  }

  #followProvider(): void {
    const provider = metrics.getMeterProvider();
    if (provider === this.#provider) return;
    this.#provider = provider;
    this.#meter = provider.getMeter(SCOPE);
    this.#instruments.clear();
    harmless(() => this.#stopObserving?.());
    this.#stopObserving = this.#observe?.(this.#meter);
  }
}
