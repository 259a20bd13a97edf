import type { DynamicModule, INestApplicationContext, Type } from '@nestjs/common';

/**
 * A part of the contract that not every store has. `instances`: several applications share it, and it outlives them.
 * `groups`: its instances can be in different groups.
 */
export type DeadlineStoreOffer = 'instances' | 'groups';

/** A store of deadlines for one check. */
export interface DeadlineStoreUnderTest {
  /** The module of the store, for another application. Without a group, all are in one. */
  module(group?: string): Type | DynamicModule;
  /** Lets time pass in the store of a running application. */
  pass(milliseconds: number, app: INestApplicationContext): Promise<void>;
  /** The time in the store of a running application, in epoch milliseconds. */
  now(app: INestApplicationContext): number;
  /** Called when all applications are closed. */
  close(): Promise<void>;
}

/** How the contract reaches a store of deadlines. */
export interface DeadlineContractOptions {
  /** Makes an empty store. */
  open(): DeadlineStoreUnderTest | Promise<DeadlineStoreUnderTest>;
  readonly offers: readonly DeadlineStoreOffer[];
  /** After how many milliseconds a handler that failed is called again at the latest, whichever attempt it was. */
  readonly longestBackOff: number;
}
