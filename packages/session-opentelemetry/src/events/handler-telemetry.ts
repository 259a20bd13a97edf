import { Inject, Injectable } from '@nestjs/common';
import type { SessionTelemetry } from '@nest-session/core/internal';
import type { SessionHandlerContext } from '@nest-session/core/telemetry';
import { type Attributes, type Span, SpanKind } from '@opentelemetry/api';
import { StoreIdentity } from '../configuration/store-identity.js';
import {
  RESOLVED_TELEMETRY_OPTIONS,
  type ResolvedSessionTelemetryOptions,
} from '../configuration/session-telemetry.options.js';
import { ATTRIBUTES, SYSTEM } from '../instrumentation/attributes.js';
import { ErrorTypes } from '../instrumentation/error-types.js';
import { SessionMeter } from '../metrics/session-meter.js';
import { activeTraceparent, linksTo } from '../spans/traceparent.js';
import { beginSpan, endSpan, runInSpan } from '../spans/spans.js';
import { END_COUNTER } from './session-end.counter.js';

/** Measures and traces the event handlers of this application, and counts what no channel tells. */
@Injectable()
export class HandlerTelemetry implements SessionTelemetry {
  constructor(
    @Inject(SessionMeter) private readonly meter: SessionMeter,
    @Inject(ErrorTypes) private readonly errors: ErrorTypes,
    @Inject(StoreIdentity) private readonly store: StoreIdentity,
    @Inject(RESOLVED_TELEMETRY_OPTIONS) private readonly options: ResolvedSessionTelemetryOptions,
  ) {}

  async runHandler(run: () => unknown, call: SessionHandlerContext): Promise<unknown> {
    if (call.handler === END_COUNTER) return run();
    this.#countCall(call);
    const span = this.#beginSpan(call);
    const began = performance.now();
    let errorType: string | undefined;
    try {
      return await runInSpan(span, run);
    } catch (error) {
      errorType = this.errors.of(error);
      throw error;
    } finally {
      endSpan(span, errorType);
      this.#measure(call, (performance.now() - began) / 1000, errorType);
    }
  }

  traceparent(): string | undefined {
    return activeTraceparent();
  }

  outage(policy: 'reject' | 'anonymous' | 'on-use'): void {
    this.meter.add('outages', 1, { ...this.#ofStore, [ATTRIBUTES.outagePolicy]: policy });
  }

  deadLettered(_type: string, handler: string): void {
    if (handler === END_COUNTER) return;
    this.meter.add('deadLettered', 1, { ...this.#ofStore, ...this.#ofGroup, [ATTRIBUTES.handler]: handler });
  }

  #countCall({ type, at, attempt, handler, broadcast }: SessionHandlerContext): void {
    const ofCall = { ...this.#ofStore, ...(broadcast ? {} : this.#ofGroup) };
    if (attempt > 1) {
      this.meter.add('retried', 1, { ...ofCall, [ATTRIBUTES.handler]: handler });
      return;
    }
    // The clock of the store may be ahead of that of the process.
    const delay = Math.max(Date.now() - at, 0) / 1000;
    this.meter.record('eventDelay', delay, { ...ofCall, [ATTRIBUTES.eventType]: type });
  }

  /** It begins a trace, which links to the span that caused the event: that may have ended weeks ago. */
  #beginSpan(call: SessionHandlerContext): Span | undefined {
    const attributes = {
      ...this.#ofStore,
      ...this.#ofMessage(call),
      [ATTRIBUTES.operationType]: 'process',
      [ATTRIBUTES.eventType]: call.type,
      [ATTRIBUTES.handler]: call.handler,
    };
    const links = linksTo(call.traceparent);
    return beginSpan(`process session.${call.type}`, { kind: SpanKind.CONSUMER, root: true, attributes, links });
  }

  #measure(call: SessionHandlerContext, duration: number, errorType: string | undefined): void {
    const failed = errorType === undefined ? {} : { [ATTRIBUTES.errorType]: errorType };
    this.meter.record('processDuration', duration, {
      ...this.#ofStore,
      ...(call.broadcast ? {} : this.#ofGroup),
      [ATTRIBUTES.eventType]: call.type,
      [ATTRIBUTES.handler]: call.handler,
      ...failed,
    });
    if (!this.options.semanticMetrics) return;
    const ofMessage = { ...this.#ofMessage(call), ...failed };
    this.meter.record('messagingProcessDuration', duration, ofMessage);
    this.meter.add('consumedMessages', 1, ofMessage);
  }

  get #ofStore(): Attributes {
    return { [ATTRIBUTES.namespace]: this.store.namespace };
  }

  get #ofGroup(): Attributes {
    const { group } = this.store;
    return group === undefined ? {} : { [ATTRIBUTES.group]: group };
  }

  /** As the semantic conventions name it. */
  #ofMessage({ broadcast }: SessionHandlerContext): Attributes {
    const { namespace } = this.store;
    return {
      [ATTRIBUTES.operationName]: 'process',
      [ATTRIBUTES.system]: SYSTEM,
      [ATTRIBUTES.destination]: namespace === '' ? 'events' : `${namespace}:events`,
      ...(broadcast ? {} : this.#ofGroup),
    };
  }
}
