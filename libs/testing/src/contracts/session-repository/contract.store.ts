import type { SessionEvent, SessionRepository } from '@nest-session/core';
import type { SessionRepositoryOptions } from '@nest-session/core/store';

/**
 * A part of the contract that a store may leave out:
 * - `indexes`: the repository is an `IndexedSessionRepository`;
 * - `events`: the store records events, and notices every end;
 * - `revocations`: the store can end every session;
 * - `marks`: the store has `leaveMark()` and `readMarks()`;
 * - `nodes`: several repositories share the store;
 * - `outages`: the test can make the store fail.
 */
export type SessionStoreOffer = 'indexes' | 'events' | 'revocations' | 'marks' | 'nodes' | 'outages';

/** The store under test, and the parts of the contract that it offers. */
export interface SessionRepositoryContractOptions {
  /** Opens a new, empty store for each check. Pass the options to its repositories. */
  open(options: SessionRepositoryOptions): ContractStore | Promise<ContractStore>;
  /** The parts that the store offers. Checks of other parts are listed as skipped. */
  readonly offers: readonly SessionStoreOffer[];
  /**
   * Milliseconds by which the store's clock may move by itself during a check. Checks look at a session this long
   * before its end. Use 0 for a clock that stands still.
   * @default 30000
   */
  readonly slack?: number;
}

/** A store, and the steps that a check takes with it. */
export interface ContractStore {
  /** The repository under test. */
  readonly repository: SessionRepository;
  /** A repository of another node. Required with `nodes`. */
  readonly other?: SessionRepository;
  /** Moves the store's clock by this many milliseconds, or back if they are negative. */
  advance(milliseconds: number): void | Promise<void>;
  /**
   * Runs the background search once, for expired sessions and for those that `endEverySession()` ends. Required with
   * `events`.
   */
  reportExpired?(): Promise<unknown>;
  /** The events recorded so far, in order. Required with `events`. */
  events?(): readonly SessionEvent[] | Promise<readonly SessionEvent[]>;
  /** Runs a step while all calls of the store fail. Required with `outages`. */
  outage?(step: () => Promise<void>): Promise<void>;
  /** Closes everything that `open()` has opened. Called after each check. */
  close?(): void | Promise<void>;
}
