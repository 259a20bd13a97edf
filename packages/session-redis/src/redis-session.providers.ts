import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Provider } from '@nestjs/common';
import { IndexedSessionRepository, SessionRepository } from '@nest-session/core';
import { type ResolvedSessionOptions, SESSION_OPTIONS, SessionEventDispatcher } from '@nest-session/core/store';
import { createConnections, type RedisConnections } from './connection/redis-connections.js';
import { RequestConnection } from './connection/request.connection.js';
import { livenessOf } from './delivery/group-state.js';
import { SessionEventBroadcaster } from './delivery/session-event.broadcaster.js';
import { SessionEventConsumer } from './delivery/session-event.consumer.js';
import { ConsumerGroupMember } from './delivery/consumer-group-member.js';
import { SessionEventGroups } from './delivery/session-event-groups.js';
import { SessionEventLoader } from './delivery/session-event.loader.js';
import { SessionEventTrimmer } from './delivery/session-event.trimmer.js';
import { UnreadEventReader } from './delivery/unread-event.reader.js';
import { ExpiredSessionListener } from './expiration/expired-session.listener.js';
import { SessionExpirationSweeper } from './expiration/session-expiration.sweeper.js';
import { SessionPartitions } from './keys/session-partitions.js';
import { KeyspaceNotificationListener } from './notifications/keyspace-notification.listener.js';
import { REDIS_SESSION_MODULE_OPTIONS } from './configuration/redis-session.module-definition.js';
import {
  type RedisSessionModuleOptions,
  type ResolvedRedisSessionOptions,
  resolveRedisSessionOptions,
} from './configuration/redis-session.options.js';
import {
  BACKGROUND_SCRIPTS,
  DELIVERY_PACE,
  EVENT_STREAM_SCRIPTS,
  EXPIRED_SESSION_LISTENER,
  REDIS_CONNECTIONS,
  REDIS_SESSION_OPTIONS,
  REQUEST_CONNECTION,
  SESSION_EVENT_BROADCASTER,
  SESSION_EVENT_CONSUMER,
  SESSION_EVENT_LOADER,
  SESSION_EVENT_TRIMMER,
  SESSION_PARTITIONS,
} from './configuration/redis-session.tokens.js';
import { RedisSessionRepository } from './repository/redis-session.repository.js';
import { DeliveryScripts } from './scripts/delivery/delivery.scripts.js';
import { EventStreamScripts } from './scripts/stream/event-stream.scripts.js';
import { type KeepingRules, SessionScripts } from './scripts/session/session.scripts.js';

/** Of the delivery of events; milliseconds. Tests have less time. */
const PACE = { pollInterval: 1000, firstBackOff: 1000, longestBackOff: 300_000 };

/** How many dead letters are kept, about. */
const DEAD_LETTERS = 10_000;

/** How the parts of the package are put together; nothing in here connects or starts anything. */
export const REDIS_SESSION_PROVIDERS: Provider[] = [
  {
    provide: REDIS_SESSION_OPTIONS,
    inject: [REDIS_SESSION_MODULE_OPTIONS],
    useFactory: (options: RedisSessionModuleOptions) => resolveRedisSessionOptions(options),
  },
  {
    provide: REDIS_CONNECTIONS,
    inject: [REDIS_SESSION_OPTIONS],
    useFactory: createConnections,
  },
  {
    provide: SESSION_PARTITIONS,
    inject: [REDIS_SESSION_OPTIONS],
    useFactory: ({ namespace, partitions }: ResolvedRedisSessionOptions) =>
      new SessionPartitions(namespace, partitions),
  },
  {
    provide: BACKGROUND_SCRIPTS,
    inject: [REDIS_CONNECTIONS, SESSION_PARTITIONS, REDIS_SESSION_OPTIONS],
    useFactory: (connections: RedisConnections, partitions: SessionPartitions, options: ResolvedRedisSessionOptions) =>
      new SessionScripts(connections.background, partitions, keepingRules(options, partitions)),
  },
  {
    provide: EVENT_STREAM_SCRIPTS,
    inject: [REDIS_CONNECTIONS],
    useFactory: ({ background }: RedisConnections) => new EventStreamScripts(background),
  },
  {
    provide: REQUEST_CONNECTION,
    inject: [REDIS_CONNECTIONS, REDIS_SESSION_OPTIONS],
    useFactory: ({ request }: RedisConnections, { commandTimeout }: ResolvedRedisSessionOptions) =>
      new RequestConnection(request, commandTimeout),
  },
  {
    provide: RedisSessionRepository,
    inject: [
      REDIS_CONNECTIONS,
      REQUEST_CONNECTION,
      SESSION_PARTITIONS,
      REDIS_SESSION_OPTIONS,
      // Optional only to say what is missing.
      { token: SESSION_OPTIONS, optional: true },
    ],
    useFactory: (
      connections: RedisConnections,
      connection: RequestConnection,
      partitions: SessionPartitions,
      options: ResolvedRedisSessionOptions,
      sessionOptions?: ResolvedSessionOptions,
    ) => {
      if (!sessionOptions)
        throw new Error('RedisSessionModule needs SessionModule.forRoot() in the application as well');
      const scripts = new SessionScripts(connections.request, partitions, keepingRules(options, partitions));
      const { serializer } = options;
      return new RedisSessionRepository({ connection, scripts, partitions }, { ...sessionOptions, serializer });
    },
  },
  { provide: SessionRepository, useExisting: RedisSessionRepository },
  { provide: IndexedSessionRepository, useExisting: RedisSessionRepository },
  {
    provide: SessionExpirationSweeper,
    inject: [REDIS_CONNECTIONS, BACKGROUND_SCRIPTS, SESSION_PARTITIONS, REDIS_SESSION_OPTIONS],
    useFactory: (
      connections: RedisConnections,
      scripts: SessionScripts,
      partitions: SessionPartitions,
      options: ResolvedRedisSessionOptions,
    ) => new SessionExpirationSweeper(connections.background, scripts, partitions, options.batchSize),
  },
  {
    provide: EXPIRED_SESSION_LISTENER,
    inject: [
      REDIS_CONNECTIONS,
      BACKGROUND_SCRIPTS,
      SESSION_PARTITIONS,
      REDIS_SESSION_OPTIONS,
      SessionExpirationSweeper,
    ],
    useFactory: (
      connections: RedisConnections,
      scripts: SessionScripts,
      partitions: SessionPartitions,
      options: ResolvedRedisSessionOptions,
      sweeper: SessionExpirationSweeper,
    ) => {
      const notifications = new KeyspaceNotificationListener(connections.subscriber, connections.background);
      return new ExpiredSessionListener(notifications, scripts, partitions, options.batchSize, (signal) =>
        // Also the bucket of this minute: it holds what has ended while nobody listened.
        sweeper.runOnce({ ahead: 60_000, signal }),
      );
    },
  },
  {
    // The application's. Not the sessions' own: what it listens to must not fill the connection that they rely on.
    provide: KeyspaceNotificationListener,
    inject: [REDIS_CONNECTIONS],
    useFactory: ({ notifications, background }: RedisConnections) =>
      new KeyspaceNotificationListener(notifications, background),
  },
  {
    provide: SESSION_EVENT_LOADER,
    inject: [REDIS_CONNECTIONS, REDIS_SESSION_OPTIONS],
    useFactory: ({ background }: RedisConnections, { serializer }: ResolvedRedisSessionOptions) =>
      new SessionEventLoader(background, serializer),
  },
  { provide: DELIVERY_PACE, useValue: PACE },
  {
    provide: SESSION_EVENT_CONSUMER,
    inject: [
      REDIS_CONNECTIONS,
      SESSION_PARTITIONS,
      REDIS_SESSION_OPTIONS,
      DELIVERY_PACE,
      EVENT_STREAM_SCRIPTS,
      SessionEventDispatcher,
      SESSION_EVENT_LOADER,
    ],
    useFactory: (
      { reader, background }: RedisConnections,
      partitions: SessionPartitions,
      { events }: ResolvedRedisSessionOptions,
      pace: typeof PACE,
      streams: EventStreamScripts,
      dispatcher: SessionEventDispatcher,
      loader: SessionEventLoader,
    ) => {
      const member = { group: events.group, consumer: `${hostname()}:${process.pid}:${randomUUID()}` };
      const unread = new UnreadEventReader(reader, partitions, member);
      const scripts = new DeliveryScripts(background);
      const rules = { ...events, ...pace, deadLetters: partitions.shareOf(DEAD_LETTERS) };
      const group = new ConsumerGroupMember(unread, scripts, streams, partitions, member, rules);
      return new SessionEventConsumer(group, dispatcher, loader, { ...events, ...pace });
    },
  },
  {
    provide: SESSION_EVENT_BROADCASTER,
    inject: [REDIS_CONNECTIONS, EVENT_STREAM_SCRIPTS, SessionEventDispatcher, SESSION_EVENT_LOADER, SESSION_PARTITIONS],
    useFactory: (
      { broadcast }: RedisConnections,
      scripts: EventStreamScripts,
      dispatcher: SessionEventDispatcher,
      loader: SessionEventLoader,
      partitions: SessionPartitions,
    ) => new SessionEventBroadcaster(broadcast, scripts, dispatcher, loader, partitions),
  },
  {
    provide: SESSION_EVENT_TRIMMER,
    inject: [REDIS_CONNECTIONS, EVENT_STREAM_SCRIPTS, SESSION_PARTITIONS, REDIS_SESSION_OPTIONS],
    useFactory: (
      { background }: RedisConnections,
      scripts: EventStreamScripts,
      partitions: SessionPartitions,
      { grace, events }: ResolvedRedisSessionOptions,
    ) => new SessionEventTrimmer(background, scripts, partitions, { ...events, grace }),
  },
  {
    provide: SessionEventGroups,
    inject: [REDIS_CONNECTIONS, REQUEST_CONNECTION, SESSION_PARTITIONS, REDIS_SESSION_OPTIONS],
    useFactory: (
      { request }: RedisConnections,
      connection: RequestConnection,
      partitions: SessionPartitions,
      { serializer, events }: ResolvedRedisSessionOptions,
    ) => {
      const scripts = new EventStreamScripts(request);
      const liveness = livenessOf(events.lease);
      return new SessionEventGroups({ connection, scripts, partitions, serializer, liveness });
    },
  },
];

function keepingRules({ grace, events }: ResolvedRedisSessionOptions, partitions: SessionPartitions): KeepingRules {
  return { grace, retention: events.retention, deadLetters: partitions.shareOf(DEAD_LETTERS) };
}
