import { Inject, Injectable } from '@nestjs/common';
import { deadlineChannel } from '@nest-session/core/telemetry';
import { ATTRIBUTES } from '../instrumentation/attributes.js';
import { CallTelemetry } from './call-telemetry.js';
import { listen } from './listen.js';

/** How calls of `Deadlines` end. A store of the application's own may answer anything. */
const OUTCOMES: readonly string[] = ['scheduled', 'replaced', 'kept', 'full', 'moved', 'cancelled', 'fired', 'none'];

/** Measures and traces the calls of `Deadlines`. */
@Injectable()
export class DeadlineCallsListener {
  constructor(@Inject(CallTelemetry) private readonly calls: CallTelemetry) {}

  /** @param namespace of the store. Others in the process have other ones */
  listen(namespace: string): () => void {
    return listen(deadlineChannel, (call) => {
      if (call.namespace !== namespace) return undefined;
      const { operation, deadline } = call;
      const attributes = {
        [ATTRIBUTES.namespace]: namespace,
        [ATTRIBUTES.operation]: operation,
        [ATTRIBUTES.deadlineName]: deadline,
      };
      const span = `nest_session.deadline.${operation}`;
      return this.calls.begin(call, { span, duration: 'deadlineOperationDuration', attributes }, () =>
        shownOutcome(call.outcome),
      );
    });
  }
}

function shownOutcome(outcome: string | undefined): string | undefined {
  return outcome === undefined || OUTCOMES.includes(outcome) ? outcome : '_OTHER';
}
