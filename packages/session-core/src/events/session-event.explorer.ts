import { Inject, Injectable } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { assertToldApart, type BoundMethod, discoverMethods } from '../discovery/discover-methods.js';
import { handlesGaps, type SessionEventGap } from './on-session-event-gap.decorator.js';
import { handledEvents, type SessionEventClass } from './on-session-event.decorator.js';
import { SESSION_EVENT_CLASSES, SESSION_EVENT_TYPES, type SessionEvent } from './session.events.js';

/** A method with `@OnSessionEvent`, bound to its instance. */
export interface SessionEventHandler {
  /** `Class.method` */
  readonly name: string;
  /** The name of the module that has its class. */
  readonly module: string;
  /** Whether it is called on every instance of the application instead of on one instance of the group. */
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

/** Finds the `@OnSessionEvent` and `@OnSessionEventGap` methods of all providers and controllers of the application. */
@Injectable()
export class SessionEventExplorer {
  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
  ) {}

  /**
   * @throws InvalidSessionOptionsError for a method of a request-scoped or transient class, which has no single
   *   instance, and for two methods of one name that handle one event
   */
  explore(): ExploredHandlers {
    const explored = { events: [] as SessionEventHandler[], gaps: [] as SessionEventGapHandler[] };
    for (const { method, bind } of discoverMethods(this.discovery, this.scanner)) {
      explored.events.push(...eventHandlers(method, () => bind('@OnSessionEvent')));
      if (handlesGaps(method)) {
        const { name, call } = bind('@OnSessionEventGap');
        explored.gaps.push({ name, handle: call });
      }
    }
    const recorded = explored.events.filter(({ broadcast }) => !broadcast);
    const typesOf = ({ wants }: SessionEventHandler) =>
      SESSION_EVENT_TYPES.filter((type) => wants(SESSION_EVENT_CLASSES[type]));
    assertToldApart(
      recorded.map((each) => ({ name: each.name, module: each.module, events: typesOf(each) })),
      'SessionModule',
    );
    return explored;
  }
}

function* eventHandlers(marked: unknown, bound: () => BoundMethod): Iterable<SessionEventHandler> {
  for (const broadcast of [false, true]) {
    const handled = handledEvents(marked).filter((each) => each.broadcast === broadcast);
    if (handled.length === 0) continue;
    const { name, module, call } = bound();
    const handles = (event: SessionEvent) => handled.some(({ eventClass }) => event instanceof eventClass);
    const wants = (wanted: SessionEventClass) =>
      handled.some(({ eventClass }) => wanted === eventClass || wanted.prototype instanceof eventClass);
    yield { name, module, broadcast, handles, wants, handle: call };
  }
}
