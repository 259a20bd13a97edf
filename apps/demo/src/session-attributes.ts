import type { Fault } from './engine-room/faults.js';

declare module '@nest-session/core' {
  interface SessionAttributes {
    /** The items in the cart. */
    items: string[];
    /** Shown once, by the next request of the page. */
    flash: string;
    theme: 'light' | 'dark';
    /** The fault at the end of the session. */
    fault: Fault;
  }
}
