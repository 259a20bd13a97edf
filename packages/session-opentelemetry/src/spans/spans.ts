import {
  type Attributes,
  context,
  type Context,
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
  if (span) harmless(() => context.with(contextOf(span), start));
  return running ?? settle(run);
}

function contextOf(span: Span): Context {
  return trace.setSpan(ROOT_CONTEXT, span);
}

async function settle(run: () => unknown): Promise<unknown> {
  return run();
}
