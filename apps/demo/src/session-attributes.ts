import type { Fault } from './engine-room/faults.js';

declare module '@nest-session/core' {
  interface SessionAttributes {
    /** The items in the cart. */
    items: string[];
    /** Shown once, by the next request of the page. */
    flash: string;
    theme: 'light' | 'dark';
    /** The id of the latest order. */
    order: string;
    /** The fault at the end of the session, or of its next order. */
    fault: Fault;
  }
}
