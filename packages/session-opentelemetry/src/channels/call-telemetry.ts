import type { TracingChannel } from 'node:diagnostics_channel';
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
import { attributesOf, beginSpan, endSpan, ErrorTypes, harmless } from '../sdk-calls.js';
import type { HISTOGRAMS } from '../metrics/instrument-table.js';
import { type MeasuredStores, SessionMeter } from '../metrics/session-meter.js';

// A store of the application's own may answer anything.
const OTHER = '_OTHER';

/** Outcomes of saves that made the change, and of others. */
const SAVED = ['created', 'saved', 'touched', 'deleted', 'forwarded', 'ended'];
const UNSAVED = ['gone', 'refused', 'revoked', 'full', 'conflict'];
const OF_DEADLINES = ['scheduled', 'replaced', 'kept', 'full', 'moved', 'cancelled', 'fired', 'none'];

interface TracedCall {
  readonly namespace: string;
  readonly operation: string;
  readonly deadline?: string;
  readonly error?: unknown;
}

/** Measures and traces what stores do: the calls of sessions and of `Deadlines`, and the searches for what is due. */
@Injectable()
export class CallTelemetry {
  constructor(
    @Inject(SessionMeter) private readonly meter: SessionMeter,
    @Inject(ErrorTypes) private readonly errors: ErrorTypes,
  ) {}

  /** Listens to the channels, for these stores only. Returns what stops it. */
  listenTo({ sessions, deadlines }: Pick<MeasuredStores, 'sessions' | 'deadlines'>): () => void {
    const stops: (() => void)[] = [];
    const follow = <Message extends { readonly namespace: string }>(
      channel: TracingChannel<Message, Message>,
      { namespace }: { readonly namespace: string },
      begin: (message: Message) => () => void,
    ) => stops.push(listen(channel, (message) => (message.namespace === namespace ? begin(message) : undefined)));
    if (sessions) {
      follow(loadChannel, sessions, (load) => this.#begin(load, 'operationDuration', () => this.#loaded(load)));
      follow(saveChannel, sessions, (save) => this.#begin(save, 'operationDuration', () => this.#saved(save)));
      follow(sweepChannel, sessions, (sweep) => this.#beginSweep(sweep, 'expirationDelay'));
    }
    if (deadlines) {
      follow(deadlineChannel, deadlines, (call) =>
        this.#begin(call, 'deadlineOperationDuration', () => {
          const { outcome } = call;
          return outcome === undefined || OF_DEADLINES.includes(outcome) ? outcome : OTHER;
        }),
      );
      follow(sweepChannel, deadlines, (sweep) => this.#beginSweep(sweep, 'deadlineDelay'));
    }
    return () => {
      for (const stop of stops) stop();
    };
  }

  /** Returns what ends with the call. `outcomeOf`: how it ended without a failure; undefined: it has no outcome. */
  #begin(call: TracedCall, histogram: keyof typeof HISTOGRAMS, outcomeOf: () => string | undefined): () => void {
    const { namespace, operation, deadline: deadlineName } = call;
    const values = { namespace, operation, deadlineName };
    const name = deadlineName === undefined ? operation : `deadline.${operation}`;
    const span = beginSpan(`nest_session.${name}`, { attributes: attributesOf(values) });
    const began = performance.now();
    return () => {
      const duration = (performance.now() - began) / 1000;
      const errorType = call.error === undefined ? undefined : this.errors.of(call.error);
      const outcome = errorType === undefined ? outcomeOf() : undefined;
      endSpan(span, errorType, attributesOf({ outcome }));
      this.meter.record(histogram, duration, attributesOf({ ...values, outcome, errorType }));
    };
  }

  #loaded({ operation, namespace, found = 0, size }: SessionLoadContext): string {
    // Of several sessions, the size is the sum.
    const isOne = operation === 'load' && found === 1 && size !== undefined;
    if (isOne) this.meter.record('sessionSize', size, attributesOf({ namespace }));
    return found > 0 ? 'found' : 'none';
  }

  #saved({ namespace, outcome = '' }: SessionSaveContext): string {
    if (outcome === 'created') this.meter.add('created', 1, attributesOf({ namespace }));
    if (SAVED.includes(outcome)) return 'saved';
    if (outcome === 'collision') return 'conflict';
    return UNSAVED.includes(outcome) ? outcome : OTHER;
  }

  /** Measures how late ends or deadlines are noticed, and traces the searches that find some, or fail. */
  #beginSweep(sweep: SessionSweepContext, histogram: 'expirationDelay' | 'deadlineDelay'): () => void {
    const startTime = Date.now();
    return () => {
      const { namespace, noticedBy, claimed = 0, delays = [], error } = sweep;
      const attributes = attributesOf({ namespace, noticedBy });
      this.meter.followSdk();
      for (const delay of delays) this.meter.record(histogram, Math.max(delay, 0) / 1000, attributes);
      // A poller searches several times a second, nearly always in vain.
      if (claimed === 0 && error === undefined) return;
      const span = beginSpan('nest_session.sweep', { attributes, startTime, root: true });
      endSpan(span, error === undefined ? undefined : this.errors.of(error));
    };
  }
}

/**
 * Listens to the calls of a channel, and returns what stops it. `begin` returns what to do at the end of a call, or
 * undefined. A subscriber that throws would end the process, so nothing does.
 */
export function listen<Message extends object>(
  channel: TracingChannel<Message, Message>,
  begin: (message: Message) => (() => void) | undefined,
): () => void {
  const begun = new WeakMap<object, () => void>();
  const conclude = (message: object): void => {
    const end = begun.get(message);
    begun.delete(message);
    if (end) harmless(end);
  };
  const subscribers = {
    start: (message: Message) => {
      const end = harmless(() => begin(message));
      if (end) begun.set(message, end);
    },
    // A call that threw at once has no asynchronous end.
    end: (message: Message) => void ('error' in message && conclude(message)),
    asyncStart: () => undefined,
    asyncEnd: conclude,
    error: () => undefined,
  };
  channel.subscribe(subscribers);
  return () => {
    channel.unsubscribe(subscribers);
  };
}
