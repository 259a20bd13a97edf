import { Inject, Injectable } from '@nestjs/common';
import type { SessionTelemetry } from '@nest-session/core/internal';
import type { SessionHandlerContext } from '@nest-session/core/telemetry';
import { type Attributes, type Span, SpanKind } from '@opentelemetry/api';
import { MeasuredStores } from '../configuration/measured-stores.js';
import {
  RESOLVED_TELEMETRY_OPTIONS,
  type ResolvedSessionTelemetryOptions,
} from '../configuration/session-telemetry.options.js';
import { ATTRIBUTES, SYSTEM } from '../instrumentation/attributes.js';
import { ErrorTypes } from '../instrumentation/error-types.js';
import { SessionMeter } from '../metrics/session-meter.js';
import { activeTraceparent, beginSpan, endSpan, linksTo, runInSpan } from '../spans/spans.js';
import { END_COUNTER } from './event-counters.js';

/** Measures and traces the event handlers of this application, and counts what no channel tells. */
@Injectable()
export class HandlerTelemetry implements SessionTelemetry {
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

  traceparent(): string | undefined {
    return activeTraceparent();
  }

  outage(policy: 'reject' | 'anonymous' | 'on-use'): void {
    const { namespace } = this.stores.first;
    this.meter.add('outages', 1, { [ATTRIBUTES.namespace]: namespace, [ATTRIBUTES.outagePolicy]: policy });
  }

  deadLettered(type: string, handler: string): void {
    if (handler === END_COUNTER) return;
    const attributes = this.#ofEvents({ type, broadcast: false });
    this.meter.add('deadLettered', 1, { ...attributes, [ATTRIBUTES.handler]: handler });
  }

  #countCall(call: SessionHandlerContext): void {
    const attributes = this.#ofEvents(call);
    if (call.attempt > 1) {
      this.meter.add('retried', 1, { ...attributes, [ATTRIBUTES.handler]: call.handler });
      return;
    }
    // The clock of the store may be ahead of that of the process.
    const delay = Math.max(Date.now() - call.at, 0) / 1000;
    this.meter.record('eventDelay', delay, { ...attributes, ...ofType(call) });
  }

  /** It begins a trace, which links to the span that caused the event: that may have ended weeks ago. */
  #beginSpan(call: SessionHandlerContext): Span | undefined {
    const { namespace } = this.stores.ofEvents(call.type);
    const attributes = {
      [ATTRIBUTES.namespace]: namespace,
      ...this.#ofMessage(call),
      [ATTRIBUTES.operationType]: 'process',
      ...ofType(call),
      [ATTRIBUTES.handler]: call.handler,
    };
    const what = call.deadline === undefined ? `session.${call.type}` : `deadline.${call.deadline}`;
    return beginSpan(`process ${what}`, {
      kind: SpanKind.CONSUMER,
      root: true,
      attributes,
      links: linksTo(call.traceparent),
    });
  }

  #measure(call: SessionHandlerContext, duration: number, errorType: string | undefined): void {
    const failed = errorType === undefined ? {} : { [ATTRIBUTES.errorType]: errorType };
    const attributes = { ...this.#ofEvents(call), ...ofType(call), [ATTRIBUTES.handler]: call.handler, ...failed };
    this.meter.record('processDuration', duration, attributes);
    if (!this.options.semanticMetrics) return;
    const ofMessage = { ...this.#ofMessage(call), ...failed };
    this.meter.record('messagingProcessDuration', duration, ofMessage);
    this.meter.add('consumedMessages', 1, ofMessage);
  }

  #ofEvents(call: Pick<SessionHandlerContext, 'type' | 'broadcast'>): Attributes {
    return { [ATTRIBUTES.namespace]: this.stores.ofEvents(call.type).namespace, ...this.#ofGroup(call) };
  }

  /** A broadcast is for no group. */
  #ofGroup({ type, broadcast }: Pick<SessionHandlerContext, 'type' | 'broadcast'>): Attributes {
    const { group } = this.stores.ofEvents(type);
    return group === undefined || broadcast ? {} : { [ATTRIBUTES.group]: group };
  }

  /** As the semantic conventions name it. */
  #ofMessage(call: SessionHandlerContext): Attributes {
    const { namespace } = this.stores.ofEvents(call.type);
    return {
      [ATTRIBUTES.operationName]: 'process',
      [ATTRIBUTES.system]: SYSTEM,
      [ATTRIBUTES.destination]: namespace === '' ? 'events' : `${namespace}:events`,
      ...this.#ofGroup(call),
    };
  }
}

function ofType({ type, deadline }: SessionHandlerContext): Attributes {
  const name = deadline === undefined ? {} : { [ATTRIBUTES.deadlineName]: deadline };
  return { [ATTRIBUTES.eventType]: type, ...name };
}
