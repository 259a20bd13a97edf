import { Inject, Injectable } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { handledEvents } from './on-session-event.decorator.js';
import type { SessionEvent } from './session.events.js';

/** A method that `@OnSessionEvent` marks, on the one instance that it is called on. */
export interface SessionEventHandler {
  /** `Class.method` */
  readonly name: string;
  handles(event: SessionEvent): boolean;
  handle(event: SessionEvent): unknown;
}

type InstanceWrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** Finds the `@OnSessionEvent` methods of all providers and controllers of the application. */
@Injectable()
export class SessionEventExplorer {
  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
  ) {}

  /** @throws Error for a method of a request-scoped or transient class: there is no one instance to call it on */
  explore(): SessionEventHandler[] {
    const handlers: SessionEventHandler[] = [];
    const seen = new Set<object>();
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      // Of a request-scoped class there may be nothing but the prototype.
      const instance: unknown = wrapper.instance ?? wrapper.metatype?.prototype;
      // One object under two tokens is still one handler.
      if (typeof instance !== 'object' || instance === null || seen.has(instance)) continue;
      seen.add(instance);
      handlers.push(...this.#handlersOf(instance, wrapper));
    }
    return handlers;
  }

  *#handlersOf(instance: object, wrapper: InstanceWrapper): Iterable<SessionEventHandler> {
    const prototype = wrapper.instance ? (Object.getPrototypeOf(instance) as object | null) : instance;
    for (const method of this.scanner.getAllMethodNames(prototype)) {
      const eventClasses = handledEvents(Reflect.get(instance, method));
      if (eventClasses.length === 0) continue;
      const name = `${instance.constructor.name}.${method}`;
      if (wrapper.isTransient || !wrapper.isDependencyTreeStatic()) throw new Error(notStatic(name));
      yield {
        name,
        handles: (event) => eventClasses.some((eventClass) => event instanceof eventClass),
        // Looked up at the call, so that a spy or a proxy put in its place is called.
        handle: (event) => (Reflect.get(instance, method) as (event: SessionEvent) => unknown).call(instance, event),
      };
    }
  }
}

function notStatic(name: string): string {
  return (
    `@OnSessionEvent cannot be used on ${name}: its class is request-scoped or transient, directly or through what it ` +
    'injects, and a session event belongs to no request. Move the method to a provider of the default scope.'
  );
}
