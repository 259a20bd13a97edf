import type { SessionEvent, SessionRepository } from '@nest-session/core';
import type { SessionRepositoryOptions } from '@nest-session/core/store';

/**
 * A part of the contract that not every store has. `indexes`: the repository is an `IndexedSessionRepository`. `events`:
 * what happens to sessions is recorded, and every end is noticed. `nodes`: several repositories share the store.
 * `outages`: the test can make the store fail.
 */
export type SessionStoreOffer = 'indexes' | 'events' | 'nodes' | 'outages';

/** The store under test, and which parts of the contract it has. */
export interface SessionRepositoryContractOptions {
  /** An empty store of its own for each check, whose repositories have these options. */
  open(options: SessionRepositoryOptions): ContractStore | Promise<ContractStore>;
  /** What the checks of the other parts are about is listed as not offered. */
  readonly offers: readonly SessionStoreOffer[];
  /**
   * Milliseconds by which the store's clock may move on by itself during a check: so much earlier than a session's end it
   * is looked at "just before". 0 for a clock that stands still. @default 30000
   */
  readonly slack?: number;
}

/** A store, and what a test does to it. */
export interface ContractStore {
  /** The repository under test. */
  readonly repository: SessionRepository;
  /** A repository of another node; with `nodes`. */
  readonly other?: SessionRepository;
  /** Sets the store's clock ahead by so many milliseconds, or back. */
  advance(milliseconds: number): void | Promise<void>;
  /** One pass of what notices in the background that sessions have expired; with `events`, or if there is such. */
  reportExpired?(): Promise<unknown>;
  /** What has been recorded so far, in that order; with `events`. */
  events?(): readonly SessionEvent[] | Promise<readonly SessionEvent[]>;
  /** Runs a step while all calls of the store fail; with `outages`. */
  outage?(step: () => Promise<void>): Promise<void>;
  /** Ends what the store has opened; called after each check. */
  close?(): void | Promise<void>;
}
