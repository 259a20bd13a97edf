import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Provider } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { IndexedSessionRepository, InvalidSessionOptionsError, SessionRepository } from '@nest-session/core';
import { ForeignSessions, injectDependencies } from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS, SessionEventDispatcher } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import { REDIS_SESSION_MODULE_OPTIONS } from './configuration/redis-session.module-definition.js';
import {
  type RedisSessionModuleOptions,
  type ResolvedRedisSessionOptions,
  resolveRedisSessionOptions,
} from './configuration/redis-session.options.js';
import {
  BACKGROUND_SESSION_SCRIPTS,
  BACKGROUND_STREAM_SCRIPTS,
  CONSUMER_IDENTITY,
  DELIVERY_PACE,
  EVENT_RULES,
  REDIS_CONNECTIONS,
  REDIS_SESSION_OPTIONS,
  REQUEST_SESSION_SCRIPTS,
  REQUEST_STREAM_SCRIPTS,
  SESSION_EVENT_DISPATCHER,
  SESSION_REPOSITORY_OPTIONS,
  SHADOW_KEY_LISTENER,
} from './configuration/redis-session.tokens.js';
import { connectionToken, createConnections, type RedisConnections } from './connection/redis-connections.js';
import { addressWith } from './connection/node-with.js';
import { PartitionSignals } from './connection/partition-signals.js';
import type { RedisNodes } from './connection/redis-nodes.js';
import { LivingInstances } from './connection/living-instances.js';
import { RequestConnection } from './connection/request.connection.js';
import { BlockingEventReader } from './delivery/blocking-event.reader.js';
import { ConsumerGroupMember } from './delivery/consumer-group-member.js';
import { BlockingArrivals, EventArrivals, SignalledArrivals } from './delivery/event-arrivals.js';
import { SessionDeadLetterReader } from './delivery/session-dead-letter.reader.js';
import { SessionEventBroadcaster } from './delivery/session-event.broadcaster.js';
import { SessionEventConsumer } from './delivery/session-event.consumer.js';
import { SessionEventGroups } from './delivery/session-event-groups.js';
import { SessionEventLoader } from './delivery/session-event.loader.js';
import { SessionEventTrimmer } from './delivery/session-event.trimmer.js';
import { SignalledEventReader } from './delivery/signalled-event.reader.js';
import { UnreadEventReader } from './delivery/unread-event.reader.js';
import { CleanupTurns } from './expiration/cleanup-turns.js';
import { DueSessionPoller } from './expiration/due-session-poller.js';
import { ExpiredSessionListener } from './expiration/expired-session.listener.js';
import { OlderSessionSweeper } from './expiration/older-session.sweeper.js';
import { SessionExpirationSweeper } from './expiration/session-expiration.sweeper.js';
import { TimedSessionListener } from './expiration/timed-session.listener.js';
import { SessionPartitions } from './keys/session-partitions.js';
import { eventRules, PACE } from './delivery/event-rules.js';
import { KeyspaceNotificationListener } from './notifications/keyspace-notification.listener.js';
import { RedisForeignSessions } from './repository/redis-foreign-sessions.js';
import { SessionLedger } from './limits/session-ledger.js';
import { type RedisRepositoryOptions, RedisSessionRepository } from './repository/redis-session.repository.js';
import { ScheduledEnds } from './repository/scheduled-ends.js';
import { SessionEpochs } from './repository/session-epochs.js';
import { type ConsumerIdentity, DeliveryScripts } from './scripts/delivery/delivery.scripts.js';
import { EventStreamScripts } from './scripts/stream/event-stream.scripts.js';
import { type ScriptsOn, scriptsOn } from './scripts/define-scripts.js';
import { SessionCleanup } from './session-cleanup.js';
import { BackgroundLimiter } from './timing/background.limiter.js';
import { type KeepingRules, SessionScripts } from './scripts/session/session.scripts.js';

const BARE_CLASS = 'It is imported as a class: write RedisSessionModule.forRoot() in the imports of the root module.';

const SESSION_MODULE_MISSING =
  'SessionModule is missing: add SessionModule.forRoot() to the imports of the root module.';

/** Values, and the classes with one instance per connection. */
const VALUES: Provider[] = [
  { provide: REDIS_SESSION_OPTIONS, inject: [ModuleRef], useFactory: resolveOptions },
  { provide: REDIS_CONNECTIONS, inject: [REDIS_SESSION_OPTIONS], useFactory: createConnections },
  connection('request'),
  connection('writes'),
  connection('background'),
  connection('subscriber'),
  connection('notifications'),
  connection('signals'),
  { provide: SessionPartitions, inject: [REDIS_SESSION_OPTIONS], useFactory: partitionsOf },
  {
    provide: REQUEST_SESSION_SCRIPTS,
    inject: [SessionPartitions, EVENT_RULES],
    useFactory: (partitions: SessionPartitions, rules: KeepingRules) =>
      scriptsOn((client) => new SessionScripts(client, partitions, rules)),
  },
  {
    provide: BACKGROUND_SESSION_SCRIPTS,
    inject: [REQUEST_SESSION_SCRIPTS, connectionToken('background')],
    useFactory: onConnection<SessionScripts>,
  },
  { provide: REQUEST_STREAM_SCRIPTS, useFactory: () => scriptsOn((client) => new EventStreamScripts(client)) },
  {
    provide: BACKGROUND_STREAM_SCRIPTS,
    inject: [REQUEST_STREAM_SCRIPTS, connectionToken('background')],
    useFactory: onConnection<EventStreamScripts>,
  },
  listener(SHADOW_KEY_LISTENER, 'subscriber'),
  // On a connection of its own: the application's key events must not delay those of shadow keys.
  listener(KeyspaceNotificationListener, 'notifications'),
  // Optional, so that the error names the missing module.
  {
    provide: SESSION_EVENT_DISPATCHER,
    inject: [{ token: SessionEventDispatcher, optional: true }],
    useFactory: ofSessionModule<SessionEventDispatcher>,
  },
  {
    provide: SESSION_REPOSITORY_OPTIONS,
    inject: [REDIS_SESSION_OPTIONS, { token: SESSION_OPTIONS, optional: true }],
    useFactory: repositoryOptions,
  },
  {
    provide: UnreadEventReader,
    inject: [REDIS_CONNECTIONS, SessionPartitions, CONSUMER_IDENTITY, PartitionSignals],
    useFactory: unreadEventReader,
  },
  {
    provide: EventArrivals,
    inject: [REDIS_CONNECTIONS, SessionPartitions, PartitionSignals],
    useFactory: eventArrivals,
  },
  { provide: CONSUMER_IDENTITY, inject: [REDIS_SESSION_OPTIONS], useFactory: consumerIdentity },
  {
    provide: LivingInstances,
    inject: [RequestConnection, SessionPartitions, CONSUMER_IDENTITY],
    useFactory: (connection: RequestConnection, partitions: SessionPartitions, { consumer }: ConsumerIdentity) =>
      new LivingInstances(connection, partitions, consumer),
  },
  { provide: DELIVERY_PACE, useValue: PACE },
  {
    provide: EVENT_RULES,
    inject: [REDIS_SESSION_OPTIONS, DELIVERY_PACE, SessionPartitions],
    useFactory: eventRules,
  },
];

/** All providers of `RedisSessionModule`. They connect and start nothing. */
export const REDIS_SESSION_PROVIDERS: Provider[] = [
  ...VALUES,
  RequestConnection,
  PartitionSignals,
  SessionEpochs,
  SessionLedger,
  ScheduledEnds,
  RedisSessionRepository,
  RedisForeignSessions,
  { provide: ForeignSessions, useExisting: RedisForeignSessions },
  { provide: SessionRepository, useExisting: RedisSessionRepository },
  { provide: IndexedSessionRepository, useExisting: RedisSessionRepository },
  { provide: BackgroundLimiter, inject: [connectionToken('background')], useFactory: backgroundLimiter },
  SessionExpirationSweeper,
  OlderSessionSweeper,
  ExpiredSessionListener,
  TimedSessionListener,
  DueSessionPoller,
  SessionEventLoader,
  DeliveryScripts,
  ConsumerGroupMember,
  SessionEventConsumer,
  SessionEventBroadcaster,
  SessionEventTrimmer,
  CleanupTurns,
  SessionCleanup,
  SessionDeadLetterReader,
  SessionEventGroups,
];

/** Of the module that holds the options, which is missing where the application imports the bare class. */
async function resolveOptions(moduleRef: ModuleRef): Promise<ResolvedRedisSessionOptions> {
  const bareClass = () => new InvalidSessionOptionsError('RedisSessionModule', [BARE_CLASS]);
  const [options] = await injectDependencies(moduleRef, [REDIS_SESSION_MODULE_OPTIONS], bareClass);
  return resolveRedisSessionOptions(options as RedisSessionModuleOptions);
}

function partitionsOf({ namespace, partitions }: ResolvedRedisSessionOptions): SessionPartitions {
  return new SessionPartitions(namespace, partitions);
}

function connection(name: keyof RedisConnections): Provider {
  const useFactory = (connections: RedisConnections) => connections[name];
  return { provide: connectionToken(name), inject: [REDIS_CONNECTIONS], useFactory };
}

function onConnection<Scripts>(scripts: ScriptsOn<Scripts>, client: Redis): Scripts {
  return scripts(client);
}

function listener(provide: symbol | typeof KeyspaceNotificationListener, name: keyof RedisConnections): Provider {
  return {
    provide,
    inject: [connectionToken(name), connectionToken('background')],
    useFactory: (nodes: RedisNodes, commands: Redis) => new KeyspaceNotificationListener(nodes, commands),
  };
}

function backgroundLimiter(background: Redis): BackgroundLimiter {
  return new BackgroundLimiter(undefined, (key) => addressWith(background, key));
}

function unreadEventReader(
  { reader, background }: RedisConnections,
  { all }: SessionPartitions,
  member: ConsumerIdentity,
  signals: PartitionSignals,
): UnreadEventReader {
  return reader && all.length === 1
    ? new BlockingEventReader(reader, all[0]!, member)
    : new SignalledEventReader(background, all, member, signals);
}

function eventArrivals(
  { broadcast }: RedisConnections,
  { all }: SessionPartitions,
  signals: PartitionSignals,
): EventArrivals {
  return broadcast && all.length === 1 ? new BlockingArrivals(broadcast, all[0]!) : new SignalledArrivals(signals, all);
}

function ofSessionModule<T>(provided: T | undefined): T {
  if (provided === undefined) throw new InvalidSessionOptionsError('RedisSessionModule', [SESSION_MODULE_MISSING]);
  return provided;
}

function repositoryOptions(
  { serializer, encryption }: ResolvedRedisSessionOptions,
  options: ResolvedSessionOptions | undefined,
): RedisRepositoryOptions {
  return { ...ofSessionModule(options), serializer, encryption };
}

function consumerIdentity({ events }: ResolvedRedisSessionOptions) {
  return { group: events.group, consumer: `${hostname()}:${process.pid}:${randomUUID()}` };
}
