import { Injectable } from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';
import { OneLineLogger, shownError } from '@nest-session/core/internal';
import {
  type Attributes,
  context,
  isSpanContextValid,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';

/** The names of all attributes of metrics and spans. None of them grows with the number of users or sessions. */
export const ATTRIBUTES = {
  namespace: 'nest_session.namespace',
  operation: 'nest_session.operation',
  outcome: 'nest_session.outcome',
  outagePolicy: 'nest_session.outage.policy',
  endReason: 'nest_session.end.reason',
  noticedBy: 'nest_session.noticed_by',
  deadlineName: 'nest_session.deadline.name',
  eventType: 'nest_session.event.type',
  handler: 'nest_session.handler',
  notifications: 'nest_session.notifications.state',
  securityKind: 'nest_session.security.kind',
  errorType: 'error.type',
  group: 'messaging.consumer.group.name',
  system: 'messaging.system',
  destination: 'messaging.destination.name',
  operationName: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
} as const;

type Values = { readonly [Key in keyof typeof ATTRIBUTES]?: string | undefined };

export function attributesOf(values: Values): Attributes {
  const attributes: Attributes = {};
  for (const [key, value] of Object.entries(values))
    if (value !== undefined) attributes[ATTRIBUTES[key as keyof Values]] = value;
  return attributes;
}

export const SCOPE = '@nest-session/opentelemetry';

const logger = new OneLineLogger('SessionTelemetry');
let hasFailed = false;

/** Calls the SDK of the application. Its first error is logged, and none harms anything else. */
export function harmless<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    const failed = "OpenTelemetry's SDK failed, so measurements of sessions or spans are lost";
    if (!hasFailed) logger.error(`${failed}. Its later failures are not logged: ${shownError(error)}`);
    hasFailed = true;
    return undefined;
  }
}

/** How many classes of errors are told apart. The others share one name. */
const MOST_TYPES = 50;
const OTHER = '_OTHER';
const CLASS_NAME = /^[A-Za-z_$][\w$]{0,63}$/;

/** The classes of errors. Their names and messages are never read: they may quote anything. */
@Injectable()
export class ErrorTypes {
  readonly #known = new Set<string>();

  of(error: unknown): string {
    // What a store threw says more than that it is a store.
    const name = classOf(error instanceof SessionStoreError && error.cause instanceof Error ? error.cause : error);
    if (!CLASS_NAME.test(name)) return OTHER;
    if (this.#known.size < MOST_TYPES) this.#known.add(name);
    return this.#known.has(name) ? name : OTHER;
  }
}

function classOf(error: unknown): string {
  if (typeof error !== 'object') return typeof error;
  const type = error?.constructor as { readonly name: string } | undefined;
  return type?.name ?? OTHER;
}

/** Begins a span, as a child of the active one unless it is a root. */
export function beginSpan(name: string, options: SpanOptions): Span | undefined {
  return harmless(() => trace.getTracer(SCOPE).startSpan(name, options, context.active()));
}

export function endSpan(span: Span | undefined, errorType: string | undefined, attributes: Attributes = {}): void {
  harmless(() => {
    span?.setAttributes({ ...attributes, ...attributesOf({ errorType }) });
    if (errorType !== undefined) span?.setStatus({ code: SpanStatusCode.ERROR });
    span?.end();
  });
}

/** Calls a function in the context of a span and of nothing else. It is called once, whatever the SDK does. */
export async function runInSpan(span: Span | undefined, run: () => unknown): Promise<unknown> {
  let running: Promise<unknown> | undefined;
  const settle = async () => run();
  if (span) harmless(() => context.with(trace.setSpan(ROOT_CONTEXT, span), () => void (running = settle())));
  return running ?? settle();
}

// W3C Trace Context, version 00: https://www.w3.org/TR/trace-context/#traceparent-header
const TRACEPARENT = /^00-(?<traceId>[0-9a-f]{32})-(?<spanId>[0-9a-f]{16})-(?<flags>[0-9a-f]{2})$/;

/** The span that is active, as W3C Trace Context writes it; undefined when there is none. */
export function activeTraceparent(): string | undefined {
  const active = harmless(() => trace.getActiveSpan()?.spanContext());
  if (!active || !isSpanContextValid(active)) return undefined;
  return `00-${active.traceId}-${active.spanId}-${active.traceFlags.toString(16).padStart(2, '0')}`;
}

/** A link to the span that a traceparent names; none for any other text. */
export function linksTo(traceparent: string | undefined): Link[] {
  const { traceId, spanId, flags } = TRACEPARENT.exec(traceparent ?? '')?.groups ?? {};
  if (!traceId || !spanId || !flags) return [];
  return [{ context: { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true } }];
}
