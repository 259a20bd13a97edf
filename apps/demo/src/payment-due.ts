import { deadline } from '@nest-session/deadlines';
import type { Fault } from './engine-room/faults.js';

/** What the handler is told of an order that is due. */
export interface DueOrder {
  /** The session that placed it, whose page shows what happens. */
  readonly sessionId: string;
  readonly to: string;
  readonly items: readonly string[];
  /** The fault at its end. */
  readonly fault?: Fault | undefined;
}

/** Each order has such a deadline, with its id as the key, until it is paid. */
export const paymentDue = deadline<DueOrder>('order.payment-due');
