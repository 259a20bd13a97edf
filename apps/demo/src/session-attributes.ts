import type { Fault } from './engine-room/faults.js';

declare module '@nest-session/core' {
  interface SessionAttributes {
    /** What is in the cart. */
    items: string[];
    /** Shown once, by the next request of the page. */
    flash: string;
    theme: 'light' | 'dark';
    /** How the end of the session is to go wrong. */
    fault: Fault;
  }
}
