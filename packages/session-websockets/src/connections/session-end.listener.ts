import { setImmediate as nextTurn } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Inject, Injectable, Optional } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import {
  OnSessionEvent,
  OnSessionEventGap,
  SessionDestroyedEvent,
  SessionIdChangedEvent,
  SessionRepository,
} from '@nest-session/core';
import { SessionExtension } from '@nest-session/core/internal';
import { PollingLoop } from '@nest-session/core/store';
import { OpenConnections } from './open-connections.js';

/** How many sessions one call of the store looks up. */
const BATCH_SIZE = 100;
/** The pause between two searches, in milliseconds. */
const PAUSE = 1000;

/**
 * Closes the connections of a session on every instance when the session ends. It also closes them when the session is
 * rotated, because a connection that was opened with a planted token must not follow the login of its victim.
 */
@Injectable()
export class SessionEndListener implements BeforeApplicationShutdown {
  readonly #search = new PollingLoop('The search for connections of ended sessions', PAUSE, () => this.#closeEnded());

  #gaps = 0;
  #isEnding = false;

  constructor(
    @Inject(OpenConnections) private readonly connections: OpenConnections,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
    @Optional() @Inject(SessionExtension) extension?: SessionExtension,
  ) {
    // The end events of these sessions may come minutes later.
    if (extension) extension.onEveryEnd = () => this.search();
  }

  @OnSessionEvent(SessionDestroyedEvent, { broadcast: true })
  async onDestroyed({ sessionId }: SessionDestroyedEvent): Promise<void> {
    // A store in memory tells of the end before the message is answered that has ended the session.
    await nextTurn();
    this.connections.close(sessionId, 'session ended');
  }

  @OnSessionEvent(SessionIdChangedEvent, { broadcast: true })
  onIdChanged({ previousSessionId }: SessionIdChangedEvent): void {
    this.connections.close(previousSessionId, 'session id changed');
  }

  /**
   * Searches for ended sessions, and repeats until the store replies. Called when events come late or were missed, for
   * example because Redis was down.
   */
  @OnSessionEventGap()
  search(): void {
    this.#gaps++;
    // The store is closed soon.
    if (!this.#isEnding) this.#search.start();
  }

  /** Stops the search. Called by Nest. */
  beforeApplicationShutdown(): Promise<void> {
    this.#isEnding = true;
    return this.#search.stop();
  }

  async #closeEnded(): Promise<void> {
    const repository = this.moduleRef.get<SessionRepository>(SessionRepository, { strict: false });
    const { ids } = this.connections;
    const gaps = this.#gaps;
    while (ids.length > 0) {
      const batch = ids.splice(0, BATCH_SIZE);
      const sessions = await repository.findByIds(batch);
      for (const [index, id] of batch.entries()) if (!sessions[index]) this.connections.close(id, 'session ended');
    }
    // Go on after another gap, because sessions that this step has found may have ended in it. stop() waits for this
    // step, so do not await it.
    if (this.#gaps === gaps) void this.#search.stop();
  }
}
