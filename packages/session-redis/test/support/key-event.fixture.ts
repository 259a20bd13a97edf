import { createConnections } from '../../../redis-events/src/connection/redis-connections.js';
import { SingleNode } from '../../../redis-events/src/connection/redis-nodes.js';
import { ExpiredSessionListener } from '../../src/expiration/expired-session.listener.js';
import { SessionExpirationSweeper } from '../../src/expiration/session-expiration.sweeper.js';
import type { SessionPartitions } from '../../src/keys/session-partitions.js';
import { KeyspaceNotificationListener } from '../../../redis-events/src/notifications/keyspace-notification.listener.js';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { BackgroundLimiter } from '../../../redis-events/src/timing/background.limiter.js';
import { KEEPING_RULES, type Store } from './store.fixture.js';

/** So that a test needs no real minutes. */
const PACE = { heartbeat: 50, probe: 100 };

// Milliseconds after which a silent connection counts as dead: longer than a stall of this process or Redis, since the
// notifications during a reconnection are lost.
const PATIENT = 60_000;

/** The listeners of one instance for expirations, with shorter timeouts for a silent connection. */
export class KeyEvents {
  private constructor(
    readonly notifications: KeyspaceNotificationListener,
    readonly sweeper: SessionExpirationSweeper,
    readonly stop: () => Promise<void>,
  ) {}

  /** `subscriberUrl`: the address for the notification connection only; `silence`: ms until that counts as dead. */
  static start(store: Store, url = store.server.url, subscriberUrl = url, silence = PATIENT): KeyEvents {
    const { background } = createConnections(resolveRedisSessionOptions({ url }));
    const subscriber = subscriberTo(subscriberUrl, silence);
    const notifications = new KeyspaceNotificationListener(new SingleNode(subscriber), background, PACE);
    const scripts = new SessionScripts(background, store.partitions, KEEPING_RULES);
    const options = { batchSize: 100 };
    const limiter = new BackgroundLimiter();
    const sweeper = new SessionExpirationSweeper(background, scripts, store.partitions, options, limiter);
    const listener = new ExpiredSessionListener(notifications, scripts, store.partitions, options, sweeper, limiter);
    listener.start();
    return new KeyEvents(notifications, sweeper, async () => {
      await listener.stop();
      background.disconnect();
    });
  }
}

/** A connection for notifications as the module makes it. */
export function subscriberTo(url: string, socketTimeout = PATIENT) {
  const { subscriber } = createConnections(resolveRedisSessionOptions({ url }));
  return subscriber
    .of(undefined)!
    .duplicate({ socketTimeout, disconnectTimeout: 10 })
    .on('error', () => undefined);
}

/** The streams of one Redis or of a Cluster. */
export interface RecordedStore {
  readonly client: { xrange(stream: string, from: string, to: string): Promise<[id: string, fields: string[]][]> };
  readonly partitions: Pick<SessionPartitions, 'all'>;
}

/** How often the expiry of each session was recorded. */
export async function recordedExpirations(store: RecordedStore): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { events } of store.partitions.all) {
    for (const [, [, type, , id = '']] of await store.client.xrange(events, '-', '+')) {
      if (type === 'expired') counts.set(id, (counts.get(id) ?? 0) + 1);
    }
  }
  return counts;
}
