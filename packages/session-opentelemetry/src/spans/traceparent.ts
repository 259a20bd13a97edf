import { isSpanContextValid, type Link, trace } from '@opentelemetry/api';
import { harmless } from '../instrumentation/harmless.js';

// W3C Trace Context, version 00: https://www.w3.org/TR/trace-context/#traceparent-header
const TRACEPARENT = /^00-(?<traceId>[0-9a-f]{32})-(?<spanId>[0-9a-f]{16})-(?<flags>[0-9a-f]{2})$/;

/** The span that is active, as W3C Trace Context writes it; undefined when there is none. */
export function activeTraceparent(): string | undefined {
  const active = harmless(() => trace.getActiveSpan()?.spanContext());
  if (!active || !isSpanContextValid(active)) return undefined;
  return `00-${active.traceId}-${active.spanId}-${active.traceFlags.toString(16).padStart(2, '0')}`;
}

/** A link to the span that it names; none for any other text. */
export function linksTo(traceparent: string | undefined): Link[] {
  const { traceId, spanId, flags } = TRACEPARENT.exec(traceparent ?? '')?.groups ?? {};
  if (!traceId || !spanId || !flags) return [];
  return [{ context: { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true } }];
}
