import { Inject, Injectable } from '@nestjs/common';
import {
  loadChannel,
  saveChannel,
  type SessionLoadContext,
  type SessionSaveContext,
} from '@nest-session/core/telemetry';
import { ATTRIBUTES } from '../instrumentation/attributes.js';
import { SessionMeter } from '../metrics/session-meter.js';
import { CallTelemetry } from './call-telemetry.js';
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
  revoked: 'revoked',
  full: 'full',
  conflict: 'conflict',
  collision: 'conflict',
};

/** Measures and traces the calls of the store of sessions. */
@Injectable()
export class SessionCallsListener {
  constructor(
    @Inject(CallTelemetry) private readonly calls: CallTelemetry,
    @Inject(SessionMeter) private readonly meter: SessionMeter,
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
    outcomeOf: () => string,
  ): (() => void) | undefined {
    if (call.namespace !== namespace) return undefined;
    const { operation } = call;
    const attributes = { [ATTRIBUTES.namespace]: namespace, [ATTRIBUTES.operation]: operation };
    const measured = { span: `nest_session.${operation}`, duration: 'operationDuration', attributes } as const;
    return this.calls.begin(call, measured, outcomeOf);
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
