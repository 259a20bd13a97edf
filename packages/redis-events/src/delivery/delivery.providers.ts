import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Provider } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { addressWith } from '../connection/node-with.js';
import { LivingInstances } from '../namespace/living-instances.js';
import { connectionToken } from '../connection/redis-connections.js';
import { RequestConnection } from '../connection/request.connection.js';
import { Partitions } from '../partitions/partitions.js';
import { scriptsOn } from '../scripts/define-scripts.js';
import { type ConsumerIdentity, EventStreamScripts } from '../scripts/event-stream.scripts.js';
import { BackgroundLimiter } from '../timing/background.limiter.js';
import { ConsumerGroupMember } from './consumer-group-member.js';
import { DeadLetterReader } from './event-groups.js';
import {
  CONSUMER_IDENTITY,
  DELIVERY_OPTIONS,
  DELIVERY_PACE,
  type DeliveryOptions,
  EVENT_RULES,
  eventRules,
  PACE,
  REQUEST_STREAM_SCRIPTS,
} from '../configuration/event-rules.js';
import { EventArrivals, UnreadEventReader } from './partition-turns.js';
import { EventLoader, EventProducer } from './event-producer.js';
import { EventBroadcaster } from './event.broadcaster.js';
import { EventConsumer } from './event.consumer.js';
import { EventTrimmer } from './event.trimmer.js';
import { GroupLagReader } from './group-states.js';

export const DELIVERY_PROVIDERS: Provider[] = [
  { provide: DELIVERY_PACE, useValue: PACE },
  { provide: EVENT_RULES, inject: [DELIVERY_OPTIONS, DELIVERY_PACE, Partitions], useFactory: eventRules },
  { provide: CONSUMER_IDENTITY, inject: [DELIVERY_OPTIONS], useFactory: consumerIdentity },
  {
    provide: LivingInstances,
    inject: [RequestConnection, Partitions, CONSUMER_IDENTITY, connectionToken('background')],
    useFactory: (requests: RequestConnection, partitions: Partitions, own: ConsumerIdentity, background: Redis) =>
      new LivingInstances(requests, partitions, own.consumer, { run: (command) => command(background) }),
  },
  {
    provide: BackgroundLimiter,
    inject: [connectionToken('background')],
    useFactory: (background: Redis) => new BackgroundLimiter(undefined, (key) => addressWith(background, key)),
  },
  {
    provide: REQUEST_STREAM_SCRIPTS,
    inject: [EventProducer],
    useFactory: ({ kind }: EventProducer) => scriptsOn((client) => new EventStreamScripts(client, kind)),
  },
  {
    provide: EventStreamScripts,
    inject: [connectionToken('background'), EventProducer],
    useFactory: (client: Redis, { kind }: EventProducer) => new EventStreamScripts(client, kind),
  },
  UnreadEventReader,
  EventArrivals,
  ConsumerGroupMember,
  EventLoader,
  EventConsumer,
  EventBroadcaster,
  EventTrimmer,
  DeadLetterReader,
  GroupLagReader,
];

function consumerIdentity({ events }: DeliveryOptions): ConsumerIdentity {
  return { group: events.group, consumer: `${hostname()}:${process.pid}:${randomUUID()}` };
}
