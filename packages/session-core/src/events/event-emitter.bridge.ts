import { Inject, Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { SESSION_EVENT_TYPES, type SessionEvent, sessionEventName, type SessionEventType } from './session.events.js';
import { logger } from '../logging/session.logger.js';
import { shownStack } from '../logging/shown-error.js';

interface EventEmitter2Like {
  listenerCount(eventName: string): number;
  emitAsync(eventName: string, event: SessionEvent): Promise<unknown>;
}

interface ReadinessWatcherLike {
  waitUntilReady(): Promise<void>;
  setReady(): void;
}

/**
 * Emits session events to the `@OnEvent` listeners of @nestjs/event-emitter, if the application has that module.
 * Delivery is best effort, because the emitter does not report whether a listener succeeded. The bridge finds the
 * emitter by its methods: the package is then no dependency, and bundlers change the names of classes.
 */
@Injectable()
export class EventEmitterBridge {
  #emitters: readonly EventEmitter2Like[] | undefined;

  constructor(@Inject(DiscoveryService) private readonly discovery: DiscoveryService) {}

  /** Resolves when the `@OnEvent` listeners are attached. */
  async ready(): Promise<void> {
    const watchers = this.#find<ReadinessWatcherLike>('waitUntilReady', 'setReady');
    // A watcher rejects when attaching failed. The application sees that error itself, and our handlers do not need it.
    await Promise.allSettled(watchers.map((watcher) => watcher.waitUntilReady()));
  }

  get listenedTypes(): readonly SessionEventType[] {
    return SESSION_EVENT_TYPES.filter((type) => this.#listenedTo(sessionEventName(type)) !== undefined);
  }

  /** Never rejects. `shownEvent`: the event as log lines name it. */
  async emit(event: SessionEvent, shownEvent: string): Promise<void> {
    try {
      // With emit(), a rejecting listener with `suppressErrors: false` would end the process.
      await this.#listenedTo(event.eventName)?.emitAsync(event.eventName, event);
    } catch (error) {
      logger.error(`An EventEmitter listener failed for session event ${shownEvent}`, shownStack(error));
    }
  }

  /** Returns at most one emitter: with two EventEmitterModules, every `@OnEvent` listener is attached to both. */
  #listenedTo(eventName: string): EventEmitter2Like | undefined {
    // Emitters of Node.js do not have emitAsync(), so the methods tell the two apart.
    this.#emitters ??= this.#find<EventEmitter2Like>('emitAsync', 'listenerCount');
    return this.#emitters.find((emitter) => emitter.listenerCount(eventName) > 0);
  }

  #find<T extends object>(...methods: readonly (string & keyof T)[]): T[] {
    // Check with `in` first, because a provider may be a proxy that throws for an unknown name.
    const hasMethods = (instance: T | null | undefined): instance is T =>
      typeof instance === 'object' &&
      instance !== null &&
      methods.every((each) => each in instance && typeof instance[each] === 'function');
    return this.discovery
      .getProviders()
      .filter(({ token, isAlias }) => typeof token === 'function' && !isAlias)
      .map(({ instance }) => instance as T | undefined)
      .filter(hasMethods);
  }
}
