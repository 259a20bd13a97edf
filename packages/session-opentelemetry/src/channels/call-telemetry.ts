import { Inject, Injectable } from '@nestjs/common';
import {
  deadlineChannel,
  loadChannel,
  saveChannel,
  type SessionLoadContext,
  type SessionSaveContext,
  type SessionSweepContext,
  sweepChannel,
} from '@nest-session/core/telemetry';
import type { Attributes } from '@opentelemetry/api';
import { ATTRIBUTES } from '../instrumentation/attributes.js';
import { ErrorTypes } from '../instrumentation/error-types.js';
import type { HISTOGRAMS } from '../metrics/instrument-table.js';
import { SessionMeter } from '../metrics/session-meter.js';
import { beginSpan, endSpan } from '../spans/spans.js';
import { listen } from './listen.js';

type Histogram = keyof typeof HISTOGRAMS;

// A store of the application's own may answer anything.
const OTHER = '_OTHER';

/** What the outcomes of saves are called. */
const SAVED: Readonly<Record<string, string>> = {
  created: 'saved',
  saved: 'saved',
  touched: 'saved',
  deleted: 'saved',
  forwarded: 'saved',
  ended: 'saved',
  gone: 'gone',
  refused: 'refused',
  revoked: 'revoked',
  full: 'full',
  conflict: 'conflict',
  collision: 'conflict',
};

/** How calls of `Deadlines` end. */
const OF_DEADLINES = ['scheduled', 'replaced', 'kept', 'full', 'moved', 'cancelled', 'fired', 'none'];

/**
 * Measures and traces what a store does, as tracing channels tell of it: the calls of sessions and of `Deadlines`, and
 * the searches for what is due. `namespace`: of the store; others in the process have other ones. What listens returns
 * what stops it.
 */
@Injectable()
export class CallTelemetry {
  constructor(
    @Inject(SessionMeter) private readonly meter: SessionMeter,
    @Inject(ErrorTypes) private readonly errors: ErrorTypes,
  ) {}

  listenToLoads(namespace: string): () => void {
    return listen(loadChannel, (load) => this.#beginOfSession(load, namespace, () => this.#loaded(load)));
  }

  listenToSaves(namespace: string): () => void {
    return listen(saveChannel, (save) => this.#beginOfSession(save, namespace, () => this.#saved(save)));
  }

  listenToDeadlines(namespace: string): () => void {
    return listen(deadlineChannel, (call) => {
      if (call.namespace !== namespace) return undefined;
      const { operation, deadline } = call;
      const attributes = { [ATTRIBUTES.operation]: operation, [ATTRIBUTES.deadlineName]: deadline };
      return this.#begin(call, `deadline.${operation}`, 'deadlineOperationDuration', attributes, () => {
        const { outcome } = call;
        return outcome === undefined || OF_DEADLINES.includes(outcome) ? outcome : OTHER;
      });
    });
  }

  /** Measures how late ends or deadlines are noticed, and traces the searches that find some, or fail. */
  listenToSweeps(namespace: string, delay: 'expirationDelay' | 'deadlineDelay'): () => void {
    return listen(sweepChannel, (sweep) => {
      if (sweep.namespace !== namespace) return undefined;
      const startTime = Date.now();
      return () => this.#swept(sweep, delay, startTime);
    });
  }

  #beginOfSession(call: SessionLoadContext | SessionSaveContext, namespace: string, outcomeOf: () => string) {
    if (call.namespace !== namespace) return undefined;
    const { operation } = call;
    return this.#begin(call, operation, 'operationDuration', { [ATTRIBUTES.operation]: operation }, outcomeOf);
  }

  /**
   * Begins with a call, and returns what ends with it. `outcomeOf`: how a call ended that did not fail; undefined for
   * those that have no outcome.
   */
  #begin(
    call: { readonly namespace: string; readonly error?: unknown },
    name: string,
    histogram: Histogram,
    ofCall: Attributes,
    outcomeOf: () => string | undefined,
  ): () => void {
    const attributes = { [ATTRIBUTES.namespace]: call.namespace, ...ofCall };
    const span = beginSpan(`nest_session.${name}`, { attributes });
    const began = performance.now();
    return () => {
      const duration = (performance.now() - began) / 1000;
      const errorType = call.error === undefined ? undefined : this.errors.of(call.error);
      const outcome = errorType === undefined ? outcomeOf() : undefined;
      const ended = outcome === undefined ? {} : { [ATTRIBUTES.outcome]: outcome };
      endSpan(span, errorType, ended);
      const failed = errorType === undefined ? {} : { [ATTRIBUTES.errorType]: errorType };
      this.meter.record(histogram, duration, { ...attributes, ...ended, ...failed });
    };
  }

  #loaded({ operation, namespace, found = 0, size }: SessionLoadContext): string {
    // Of several sessions, the size is the sum.
    const isOne = operation === 'load' && found === 1 && size !== undefined;
    if (isOne) this.meter.record('sessionSize', size, { [ATTRIBUTES.namespace]: namespace });
    return found > 0 ? 'found' : 'none';
  }

  #saved({ namespace, outcome = '' }: SessionSaveContext): string {
    if (outcome === 'created') this.meter.add('created', 1, { [ATTRIBUTES.namespace]: namespace });
    return SAVED[outcome] ?? OTHER;
  }

  #swept(sweep: SessionSweepContext, histogram: Histogram, startTime: number): void {
    const { namespace, noticedBy, claimed = 0, delays = [], error } = sweep;
    const attributes = { [ATTRIBUTES.namespace]: namespace, [ATTRIBUTES.noticedBy]: noticedBy };
    this.meter.followSdk();
    for (const delay of delays) this.meter.record(histogram, Math.max(delay, 0) / 1000, attributes);
    // A poller searches several times a second, nearly always in vain.
    if (claimed === 0 && error === undefined) return;
    const span = beginSpan('nest_session.sweep', { attributes, startTime, root: true });
    endSpan(span, error === undefined ? undefined : this.errors.of(error));
  }
}
