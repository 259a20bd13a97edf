import type { DynamicModule } from '@nestjs/common';
import {
  IndexedSessionRepository,
  MapSessionRepository,
  SessionRepository,
  SessionStoreError,
} from '@nest-session/core';
import type { SessionChange, SessionRecord, WriteReply } from '@nest-session/core/store';
import { Gate } from '@nest-session/test-infrastructure';

/** The store in memory. A test can hold its calls and make them fail. */
export class GatedStore extends MapSessionRepository {
  readonly #gates = new Map<'load' | 'write', Gate>();

  /** The module for the imports of an application. */
  get module(): DynamicModule {
    const tokens = [SessionRepository, IndexedSessionRepository];
    const providers = tokens.map((provide) => ({ provide, useValue: this }));
    return { module: GatedStoreModule, global: true, providers, exports: tokens };
  }

  /** Holds all calls of a kind from now on, until the gate is opened. */
  gate(call: 'load' | 'write'): Gate {
    const gate = new Gate();
    this.#gates.set(call, gate);
    return gate;
  }

  /** Makes all calls of a kind fail from now on. */
  break(call: 'load' | 'write'): void {
    this.gate(call).fail(STORE_FAILURE);
  }

  repair(): void {
    this.#gates.clear();
  }

  protected override async load(ids: readonly string[]): Promise<SessionRecord[]> {
    await this.#gates.get('load')?.pass();
    return super.load(ids);
  }

  protected override async write(change: SessionChange): Promise<WriteReply> {
    await this.#gates.get('write')?.pass();
    return super.write(change);
  }
}

/** The error of a store that cannot be reached. */
export const STORE_FAILURE = new SessionStoreError('The test has broken the store');

class GatedStoreModule {}
