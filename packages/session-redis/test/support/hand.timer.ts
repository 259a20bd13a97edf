import type { AskAboutSession, SessionTimer } from '@nest-session/redis';

/** A timer whose clock is a test: it notes what it is told, and asks on command. */
export class HandTimer implements SessionTimer {
  /** The calls in their order: an id and its delay, or an id that is cancelled. */
  readonly calls: (readonly ['schedule', id: string, delay: number] | readonly ['cancel', id: string])[] = [];
  /** What the calls wait for after that. */
  answer: () => Promise<void> = async () => undefined;
  hasStopped = false;
  /** What its start waits for. */
  opening: Promise<void> | undefined;
  #ask: AskAboutSession | undefined;

  start(ask: AskAboutSession): void | Promise<void> {
    this.#ask = ask;
    return this.opening;
  }

  schedule(id: string, delay: number): Promise<void> {
    this.calls.push(['schedule', id, delay]);
    return this.answer();
  }

  cancel(id: string): Promise<void> {
    this.calls.push(['cancel', id]);
    return this.answer();
  }

  async stop(): Promise<void> {
    this.hasStopped = true;
  }

  ask(id: string): Promise<number | undefined> {
    return this.#ask!(id);
  }
}
