import { Injectable } from '@nestjs/common';
import {
  type Attributes,
  type Counter,
  type Histogram,
  type Meter,
  type MeterProvider,
  metrics,
} from '@opentelemetry/api';
import { harmless, SCOPE } from '../sdk-calls.js';
import { COUNTERS, HISTOGRAMS } from './instrument-table.js';

interface MeasuredStore {
  readonly namespace: string;
  readonly group: string | undefined;
}

const NONE: MeasuredStore = { namespace: '', group: undefined };

/** Which stores the application has. Known before it serves any request. */
@Injectable()
export class MeasuredStores {
  sessions: MeasuredStore | undefined;
  deadlines: MeasuredStore | undefined;

  get first(): MeasuredStore {
    return this.sessions ?? this.deadlines ?? NONE;
  }

  ofEvents(type: string): MeasuredStore {
    return (type === 'deadline' ? this.deadlines : this.sessions) ?? NONE;
  }
}

type StartObserving = (meter: Meter) => () => void;

/**
 * The instruments of the SDK that is registered at the moment. The API gives instruments of the SDK that is registered
 * when they are made, and instruments that do nothing before: so they are made anew when there is another one.
 */
@Injectable()
export class SessionMeter {
  readonly #instruments = new Map<string, Histogram | Counter>();
  #provider: MeterProvider | undefined;
  #meter!: Meter;
  #observe: StartObserving | undefined;
  #stopObserving: (() => void) | undefined;

  record(key: keyof typeof HISTOGRAMS, value: number, attributes: Attributes): void {
    const { name, unit, description, buckets } = HISTOGRAMS[key];
    const options = { unit, description, advice: { explicitBucketBoundaries: [...buckets] } };
    harmless(() => this.#instrument(name, (meter) => meter.createHistogram(name, options)).record(value, attributes));
  }

  add(key: keyof typeof COUNTERS, value: number, attributes: Attributes): void {
    const { name, unit, description } = COUNTERS[key];
    const options = { unit, description };
    harmless(() => this.#instrument(name, (meter) => meter.createCounter(name, options)).add(value, attributes));
  }

  /** Lets the SDK observe, also one that is registered later. */
  startObserving(observe: StartObserving): void {
    this.#observe = observe;
    this.#provider = undefined;
    this.followSdk();
  }

  /** Lets an SDK observe that has been registered since the last measurement. */
  followSdk(): void {
    harmless(() => this.#followProvider());
  }

  stopObserving(): void {
    harmless(() => this.#stopObserving?.());
    this.#stopObserving = undefined;
    this.#observe = undefined;
  }

  #instrument<T extends Histogram | Counter>(name: string, make: (meter: Meter) => T): T {
    this.#followProvider();
    const known = this.#instruments.get(name) ?? make(this.#meter);
    this.#instruments.set(name, known);
    return known as T;
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
