import { Inject, Injectable } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { InvalidSessionOptionsError } from '../errors/session.errors.js';
import { handlesGaps, type SessionEventGap } from './on-session-event-gap.decorator.js';
import { handledEvents, type SessionEventClass } from './on-session-event.decorator.js';
import type { SessionEvent } from './session.events.js';

/** A method with `@OnSessionEvent`, bound to its instance. */
export interface SessionEventHandler {
  /** `Class.method` */
  readonly name: string;
  /** Whether it is called on every instance of the application instead of on one of the group. */
  readonly broadcast: boolean;
  handles(event: SessionEvent): boolean;
  /** Whether it handles the events of a class. */
  wants(eventClass: SessionEventClass): boolean;
  handle(event: SessionEvent): unknown;
}

/** A method with `@OnSessionEventGap`, bound to its instance. */
interface SessionEventGapHandler {
  readonly name: string;
  handle(gap: SessionEventGap): unknown;
}

export interface ExploredHandlers {
  readonly events: readonly SessionEventHandler[];
  readonly gaps: readonly SessionEventGapHandler[];
}

type InstanceWrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** A method with its name, bound to its instance. */
interface BoundMethod {
  readonly name: string;
  readonly call: (argument: unknown) => unknown;
}

/** Finds the `@OnSessionEvent` and `@OnSessionEventGap` methods of all providers and controllers of the application. */
@Injectable()
export class SessionEventExplorer {
  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
  ) {}

  /** @throws InvalidSessionOptionsError for a method of a request-scoped or transient class: it has no single instance */
  explore(): ExploredHandlers {
    const explored = { events: [] as SessionEventHandler[], gaps: [] as SessionEventGapHandler[] };
    const seen = new Set<object>();
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      // A request-scoped class may have no instance yet.
      const instance: unknown = wrapper.instance ?? wrapper.metatype?.prototype;
      // An object under two tokens is still one handler.
      if (typeof instance !== 'object' || instance === null || seen.has(instance)) continue;
      seen.add(instance);
      const prototype = wrapper.instance ? (Object.getPrototypeOf(instance) as object | null) : instance;
      for (const method of this.scanner.getAllMethodNames(prototype)) {
        const marked: unknown = Reflect.get(instance, method);
        explored.events.push(...eventHandlers(marked, () => bind(instance, method, wrapper, '@OnSessionEvent')));
        if (handlesGaps(marked)) {
          const { name, call } = bind(instance, method, wrapper, '@OnSessionEventGap');
          explored.gaps.push({ name, handle: call });
        }
      }
    }
    return explored;
  }
}

function* eventHandlers(marked: unknown, bound: () => BoundMethod): Iterable<SessionEventHandler> {
  for (const broadcast of [false, true]) {
    const handled = handledEvents(marked).filter((each) => each.broadcast === broadcast);
    if (handled.length === 0) continue;
    const { name, call } = bound();
    const handles = (event: SessionEvent) => handled.some(({ eventClass }) => event instanceof eventClass);
    const wants = (wanted: SessionEventClass) =>
      handled.some(({ eventClass }) => wanted === eventClass || wanted.prototype instanceof eventClass);
    yield { name, broadcast, handles, wants, handle: call };
  }
}

function bind(instance: object, method: string, wrapper: InstanceWrapper, decorator: string): BoundMethod {
  const name = `${instance.constructor.name}.${method}`;
  if (wrapper.isTransient || !wrapper.isDependencyTreeStatic()) {
    throw new InvalidSessionOptionsError('SessionModule', [notStatic(decorator, name)]);
  }
  // Looked up at each call, so that a spy or a proxy that replaced the method is called.
  const call = (argument: unknown) =>
    (Reflect.get(instance, method) as (argument: unknown) => unknown).call(instance, argument);
  return { name, call };
}

function notStatic(decorator: string, name: string): string {
  return (
    `${decorator} cannot be used on ${name}: its class is request-scoped or transient, directly or through what it ` +
    'injects, and a session event belongs to no request. Move the method to a provider of the default scope.'
  );
}
