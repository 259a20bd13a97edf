import { Inject, Injectable, Module, Optional } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, MetadataScanner, ModulesContainer } from '@nestjs/core';
import {
  type HandledKind,
  NamedEventDispatcher,
  SESSION_TELEMETRY,
  type SessionTelemetry,
  startLast,
} from '@nest-session/core/internal';
import { REDIS_EVENT_MARKS } from './on-redis-event.decorator.js';
import type { RedisEvent } from './redis-event.js';

const EVENTS: HandledKind<RedisEvent> = {
  what: 'events',
  module: 'RedisEventsModule',
  marks: REDIS_EVENT_MARKS,
  nameOf: ({ type }) => type,
  shown: shownRedisEvent,
  contextOf: ({ id: eventId, type, at, attempt, traceparent }) => ({ type, eventId, at, attempt, traceparent }),
};

/** Calls the `@OnRedisEvent` methods of this application. */
@Injectable()
export class RedisEventDispatcher extends NamedEventDispatcher<RedisEvent> {
  constructor(
    @Inject(DiscoveryService) discovery: DiscoveryService,
    @Inject(MetadataScanner) scanner: MetadataScanner,
    @Optional() @Inject(SESSION_TELEMETRY) telemetry?: SessionTelemetry,
  ) {
    super(EVENTS, discovery, scanner, telemetry);
  }
}

/** Its handlers are ready after all hooks of the application. */
@Module({ imports: [DiscoveryModule], providers: [RedisEventDispatcher], exports: [RedisEventDispatcher] })
export class RedisEventHandlerModule {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    startLast(modules, RedisEventHandlerModule);
  }
}

/** An event as log lines name it. */
export function shownRedisEvent({ type, id }: Pick<RedisEvent, 'type' | 'id'>): string {
  return `${JSON.stringify(type)} (${id})`;
}
