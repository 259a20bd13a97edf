import { Inject, Injectable } from '@nestjs/common';
import type { SessionTelemetry } from '@nest-session/core/internal';
import type { SessionHandlerContext } from '@nest-session/core/telemetry';
import { type Span, SpanKind } from '@opentelemetry/api';
import {
  RESOLVED_TELEMETRY_OPTIONS,
  type ResolvedSessionTelemetryOptions,
} from '../configuration/session-telemetry.options.js';
import { activeTraceparent, attributesOf, beginSpan, endSpan, ErrorTypes, linksTo, runInSpan } from '../sdk-calls.js';
import { MeasuredStores, SessionMeter } from '../metrics/session-meter.js';
import { END_COUNTER } from './event-counters.js';

/** Measures and traces the event handlers of this application, and counts what no channel tells. */
@Injectable()
export class HandlerTelemetry implements SessionTelemetry {
  readonly traceparent = activeTraceparent;

  constructor(
    @Inject(SessionMeter) private readonly meter: SessionMeter,
    @Inject(ErrorTypes) private readonly errors: ErrorTypes,
    @Inject(MeasuredStores) private readonly stores: MeasuredStores,
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

  outage(outagePolicy: 'reject' | 'anonymous' | 'on-use'): void {
    this.meter.add('outages', 1, attributesOf({ namespace: this.stores.first.namespace, outagePolicy }));
  }

  deadLettered(type: string, handler: string): void {
    if (handler === END_COUNTER) return;
    this.meter.add('deadLettered', 1, attributesOf({ ...this.#ofEvents({ type, broadcast: false }), handler }));
  }

  device(what: 'registrations' | 'refreshes' | 'requests', outcome: string): void {
    this.meter.add(what, 1, attributesOf({ namespace: this.stores.first.namespace, outcome }));
  }

  #countCall(call: SessionHandlerContext): void {
    const ofEvents = this.#ofEvents(call);
    if (call.attempt > 1) {
      this.meter.add('retried', 1, attributesOf({ ...ofEvents, handler: call.handler }));
      return;
    }
    // The clock of the store may be ahead of that of the process.
    const delay = Math.max(Date.now() - call.at, 0) / 1000;
    this.meter.record('eventDelay', delay, attributesOf({ ...ofEvents, ...ofType(call) }));
  }

  /** It begins a trace, which links to the span that caused the event: that may have ended weeks ago. */
  #beginSpan(call: SessionHandlerContext): Span | undefined {
    const { namespace } = this.stores.ofEvents(call.type);
    const { handler } = call;
    const what = call.deadline === undefined ? `session.${call.type}` : `deadline.${call.deadline}`;
    return beginSpan(`process ${what}`, {
      kind: SpanKind.CONSUMER,
      root: true,
      attributes: attributesOf({
        namespace,
        ...this.#ofMessage(call),
        operationType: 'process',
        ...ofType(call),
        handler,
      }),
      links: linksTo(call.traceparent),
    });
  }

  #measure(call: SessionHandlerContext, duration: number, errorType: string | undefined): void {
    const { handler } = call;
    const attributes = attributesOf({ ...this.#ofEvents(call), ...ofType(call), handler, errorType });
    this.meter.record('processDuration', duration, attributes);
    if (!this.options.semanticMetrics) return;
    const ofMessage = attributesOf({ ...this.#ofMessage(call), errorType });
    this.meter.record('messagingProcessDuration', duration, ofMessage);
    this.meter.add('consumedMessages', 1, ofMessage);
  }

  /** A broadcast is for no group. */
  #ofEvents({ type, broadcast }: Pick<SessionHandlerContext, 'type' | 'broadcast'>) {
    const { namespace, group } = this.stores.ofEvents(type);
    return { namespace, group: broadcast ? undefined : group };
  }

  #ofMessage(call: SessionHandlerContext) {
    const { namespace, group } = this.#ofEvents(call);
    const destination = namespace === '' ? 'events' : `${namespace}:events`;
    return { operationName: 'process', system: 'nest_session', destination, group };
  }
}

function ofType({ type: eventType, deadline: deadlineName }: SessionHandlerContext) {
  return { eventType, deadlineName };
}
