import { Inject, Injectable } from '@nestjs/common';
import { type SessionSweepContext, sweepChannel } from '@nest-session/core/telemetry';
import { ATTRIBUTES } from '../instrumentation/attributes.js';
import { ErrorTypes } from '../instrumentation/error-types.js';
import { SessionMeter } from '../metrics/session-meter.js';
import { beginSpan, endSpan } from '../spans/spans.js';
import { listen } from './listen.js';

/** Measures how late ends and deadlines are noticed, and traces the searches that find some, or fail. */
@Injectable()
export class SweepListener {
  constructor(
    @Inject(SessionMeter) private readonly meter: SessionMeter,
    @Inject(ErrorTypes) private readonly errors: ErrorTypes,
  ) {}

  /**
   * @param namespace of the store. Others in the process have other ones
   * @param delay what measures its delays
   */
  listen(namespace: string, delay: 'expirationDelay' | 'deadlineDelay'): () => void {
    return listen(sweepChannel, (sweep) => {
      if (sweep.namespace !== namespace) return undefined;
      const startTime = Date.now();
      return () => this.#swept(sweep, delay, startTime);
    });
  }

  #swept(sweep: SessionSweepContext, histogram: 'expirationDelay' | 'deadlineDelay', startTime: number): void {
    const { namespace, noticedBy, claimed = 0, delays = [], error } = sweep;
    const attributes = { [ATTRIBUTES.namespace]: namespace, [ATTRIBUTES.noticedBy]: noticedBy };
    this.meter.followSdk();
    for (const delay of delays) this.meter.record(histogram, Math.max(delay, 0) / 1000, attributes);
    // A poller searches several times a second, nearly always in vain.
    if (claimed === 0 && error === undefined) return;
    const span = beginSpan('nest_session.sweep', { attributes, startTime, root: true });
    endSpan(span, error === undefined ? undefined : this.errors.of(error));
  }
}
