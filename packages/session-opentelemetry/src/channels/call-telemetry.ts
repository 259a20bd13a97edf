import { Inject, Injectable } from '@nestjs/common';
import type { Attributes } from '@opentelemetry/api';
import { ATTRIBUTES } from '../instrumentation/attributes.js';
import { ErrorTypes } from '../instrumentation/error-types.js';
import type { HISTOGRAMS } from '../metrics/instrument-table.js';
import { SessionMeter } from '../metrics/session-meter.js';
import { beginSpan, endSpan } from '../spans/spans.js';

/** How a call is measured and traced. */
interface MeasuredCall {
  readonly span: string;
  readonly duration: keyof typeof HISTOGRAMS;
  readonly attributes: Attributes;
}

/** Measures and traces calls of a store. */
@Injectable()
export class CallTelemetry {
  constructor(
    @Inject(SessionMeter) private readonly meter: SessionMeter,
    @Inject(ErrorTypes) private readonly errors: ErrorTypes,
  ) {}

  /**
   * Begins with a call, and returns what ends with it. `outcomeOf`: how a call ended that did not fail; undefined for
   * those that have no outcome.
   */
  begin(
    call: { readonly error?: unknown },
    { span: name, duration: histogram, attributes }: MeasuredCall,
    outcomeOf: () => string | undefined,
  ): () => void {
    const span = beginSpan(name, { attributes });
    const began = performance.now();
    return () => {
      const duration = (performance.now() - began) / 1000;
      const errorType = call.error === undefined ? undefined : this.errors.of(call.error);
      const outcome = errorType === undefined ? outcomeOf() : undefined;
      const ended = outcome === undefined ? {} : { [ATTRIBUTES.outcome]: outcome };
      endSpan(span, errorType, ended);
      const failed = errorType === undefined ? {} : { [ATTRIBUTES.errorType]: errorType };
      this.meter.record(histogram, duration, { ...attributes, ...ended, ...failed });
    };
  }
}
