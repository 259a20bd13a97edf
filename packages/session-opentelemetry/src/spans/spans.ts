import {
  type Attributes,
  context,
  isSpanContextValid,
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { ATTRIBUTES, SCOPE } from '../instrumentation/attributes.js';
import { harmless } from '../instrumentation/harmless.js';

/** What a span begins with. */
interface SpanBegin {
  readonly kind?: SpanKind;
  readonly attributes: Attributes;
  /** When it began, if that is over; in epoch milliseconds. */
  readonly startTime?: number;
  /** Whether it begins a trace of its own. */
  readonly root?: boolean;
  readonly links?: Link[];
}

/** Begins a span as a child of the active one. */
export function beginSpan(name: string, { kind = SpanKind.INTERNAL, ...begin }: SpanBegin): Span | undefined {
  return harmless(() => trace.getTracer(SCOPE).startSpan(name, { kind, ...begin }, context.active()));
}

/**
 * Ends a span. Of an error, it gets the class only: the message may quote anything.
 * @param errorType undefined if nothing failed
 */
export function endSpan(span: Span | undefined, errorType: string | undefined, attributes: Attributes = {}): void {
  harmless(() => {
    span?.setAttributes(attributes);
    if (errorType !== undefined) {
      span?.setAttribute(ATTRIBUTES.errorType, errorType);
      span?.setStatus({ code: SpanStatusCode.ERROR });
    }
    span?.end();
  });
}

/** Calls a function in the context of a span and of nothing else. It is called once, whatever the SDK does. */
export async function runInSpan(span: Span | undefined, run: () => unknown): Promise<unknown> {
  let running: Promise<unknown> | undefined;
  const start = () => void (running = settle(run));
  if (span) harmless(() => context.with(trace.setSpan(ROOT_CONTEXT, span), start));
  return running ?? settle(run);
}

async function settle(run: () => unknown): Promise<unknown> {
  return run();
}

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
