import { Inject, Injectable } from '@nestjs/common';
import {
  loadChannel,
  saveChannel,
  type SessionLoadContext,
  type SessionSaveContext,
} from '@nest-session/core/telemetry';
import type { Attributes } from '@opentelemetry/api';
import { ATTRIBUTES } from '../instrumentation/attributes.js';
import { ErrorTypes } from '../instrumentation/error-types.js';
import { SessionMeter } from '../metrics/session-meter.js';
import { beginSpan, endSpan } from '../spans/spans.js';
import { listen } from './listen.js';

/** What the outcomes of saves are called. A store of the application's own may answer anything. */
const OUTCOMES: Readonly<Record<string, string>> = {
  created: 'saved',
  saved: 'saved',
  touched: 'saved',
  deleted: 'saved',
  forwarded: 'saved',
  ended: 'saved',
  gone: 'gone',
  refused: 'refused',
  full: 'full',
  conflict: 'conflict',
  collision: 'conflict',
};

/** Measures and traces the calls of the application's store. */
@Injectable()
export class StoreCallsListener {
  constructor(
    @Inject(SessionMeter) private readonly meter: SessionMeter,
    @Inject(ErrorTypes) private readonly errors: ErrorTypes,
  ) {}

  /** @param namespace of the store. Others in the process have other ones */
  listen(namespace: string): () => void {
    const stopLoads = listen(loadChannel, (load) => this.#begin(load, namespace, () => this.#loaded(load)));
    const stopSaves = listen(saveChannel, (save) => this.#begin(save, namespace, () => this.#saved(save)));
    return () => {
      stopLoads();
      stopSaves();
    };
  }

  #begin(
    call: SessionLoadContext | SessionSaveContext,
    namespace: string,
    conclude: () => string | undefined,
  ): (() => void) | undefined {
    if (call.namespace !== namespace) return undefined;
    const attributes: Attributes = {
      [ATTRIBUTES.namespace]: namespace,
      [ATTRIBUTES.operation]: call.operation,
    };
    const span = beginSpan(`nest_session.${call.operation}`, { attributes });
    const began = performance.now();
    return () => {
      const duration = (performance.now() - began) / 1000;
      const errorType = call.error === undefined ? undefined : this.errors.of(call.error);
      const outcome = errorType === undefined ? conclude() : undefined;
      const ended = outcome === undefined ? {} : { [ATTRIBUTES.outcome]: outcome };
      endSpan(span, errorType, ended);
      const failed = errorType === undefined ? {} : { [ATTRIBUTES.errorType]: errorType };
      this.meter.record('operationDuration', duration, { ...attributes, ...ended, ...failed });
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
    return OUTCOMES[outcome] ?? '_OTHER';
  }
}
