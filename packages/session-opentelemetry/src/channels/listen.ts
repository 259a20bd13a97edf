import type { TracingChannel } from 'node:diagnostics_channel';
import { harmless } from '../instrumentation/harmless.js';

/** What to do at the end of a call, when its message has all that is known of it. */
type Conclude = () => void;

/**
 * Listens to the calls of a tracing channel. `begin` is called when a call begins, and answers what to do at its end;
 * undefined: nothing. A subscriber that throws would end the process, so nothing does. Returns what stops listening.
 */
export function listen<Message extends object>(
  channel: TracingChannel<Message, Message>,
  begin: (message: Message) => Conclude | undefined,
): () => void {
  const begun = new WeakMap<object, Conclude>();
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
