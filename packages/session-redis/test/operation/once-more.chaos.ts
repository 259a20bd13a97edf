import type { EventEmitter } from 'node:events';
import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionEvent } from '@nest-session/core';
import { KeptEntries, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { SHADOW_KEY_LISTENER } from '../../src/configuration/redis-session.tokens.js';
import { PartitionSignals } from '../../../redis-events/src/connection/partition-signals.js';
import { REDIS_CONNECTIONS, type RedisConnections } from '../../../redis-events/src/connection/redis-connections.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import type { KeyspaceNotificationListener } from '../../../redis-events/src/notifications/keyspace-notification.listener.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { HandTimer } from '../support/hand.timer.js';
import { LineRecorder } from '../support/line.recorder.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

/** What a connection needs to be made; an instance can do nothing else. */
const NO_RIGHTS = ['-@all', '+hello', '+auth', '+client', '+info', '+select', '+quit'];

/** What is logged of a fault and of its end, once each. */
const LINES: readonly (readonly [failing: RegExp, recovered: RegExp])[] = [
  [/Events cannot be read, retrying/, /^Events are read again/],
  [/Broadcast events cannot be read, retrying/, /^Broadcast events are read again/],
  [/The cleanup of sessions failed and will run again/, /^The cleanup of sessions works again/],
];

@Injectable()
class Handlers {
  readonly handled: string[] = [];
  readonly heard: string[] = [];

  @OnSessionEvent(SessionEvent)
  handle({ id }: SessionEvent) {
    this.handled.push(id);
  }

  @OnSessionEvent(SessionEvent, { broadcast: true })
  hear({ id }: SessionEvent) {
    this.heard.push(id);
  }
}

describe.each([1, 4])(
  'an instance with %d partitions, while Redis refuses everything and cuts connections,',
  (partitions) => {
    const log = new LineRecorder();
    const timer = new HandTimer();
    let store: Store;
    let kept: KeptEntries;
    let instance: EventInstance;
    let asked: string;

    beforeAll(async () => {
      kept = new KeptEntries();
      store = await Store.open({ partitions });
      await store.client.call('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all');
      instance = await EventInstance.start({
        redis: {
          url: `redis://app:secret@127.0.0.1:${store.server.port}`,
          partitions,
          cleanup: { cron: '* * * * * *' },
          expirations: timer,
        },
        providers: [Handlers],
      });
      log.install();
      await works();
    });
    afterAll(async () => {
      await instance.stop();
      kept.stop();
      await store.close();
    });

    const get = <T>(token: unknown) => instance.module.get<T>(token as never, { strict: false });
    const rights = (...rules: string[]) => store.client.call('ACL', 'SETUSER', 'app', ...rules);
    const cut = () => store.client.call('CLIENT', 'KILL', 'USER', 'app');
    const counts = (patterns: readonly RegExp[]) => patterns.map((pattern) => log.matching(pattern).length);

    /** Eight sessions, as many in each partition. */
    function inEach(interval = 1800): Promise<string[]> {
      const idIn = (keys: unknown): string => {
        const id = store.id();
        return store.keysOf(id) === keys ? id : idIn(keys);
      };
      const places = Array.from({ length: 8 }, (_, i) => store.partitions.all[i % partitions]);
      return Promise.all(places.map((keys) => store.create({ a: '1' }, { id: idIn(keys), interval })));
    }

    /**
     * Redis refuses something to each part of the instance, on the connections before and after. Resolves when it does
     * its work again.
     */
    async function failAndRecover(round: number): Promise<void> {
      await rights(...NO_RIGHTS);
      await cut();
      await expect(timer.ask(asked)).rejects.toThrow('NOPERM');
      const failed = LINES.map(([failing]) => failing);
      // The only partition has no signals.
      if (partitions > 1) failed.push(/cannot subscribe to the channels of the partitions/);
      await eventually(() => expect(counts(failed)).toEqual(failed.map(() => round)));
      await rights('+@all');
      await cut();
      expect(await timer.ask(asked)).toBeGreaterThan(0);
      await works();
      await eventually(() => expect(counts(LINES.flat())).toEqual(LINES.flat().map(() => round)));
    }

    /** Resolves when each part of the instance has done its work in each partition. */
    async function works(): Promise<void> {
      const [signals, { handled, heard }] = [get<PartitionSignals>(PartitionSignals), get<Handlers>(Handlers)];
      const notifications = get<KeyspaceNotificationListener>(SHADOW_KEY_LISTENER);
      await eventually(() => {
        const all = get<SessionPartitions>(SessionPartitions).all.filter(({ hasSignals }) => hasSignals);
        expect(Math.max(0, ...all.map((keys) => signals.heardSince(keys)))).toBeLessThan(Infinity);
        expect(notifications.health.state).toBe('listening');
      });
      const endless = await inEach(-1);
      // As another instance ends every session.
      for (const keys of store.partitions.all) {
        await store.scripts.raiseEpoch(keys);
        if (keys.hasSignals) await store.client.spublish(keys.events, 'epoch');
      }
      const [deleted, late, expired] = [await inEach(), await inEach(), await inEach()];
      await Promise.all(deleted.map((id) => store.scripts.delete(id)));
      // Only the cleanup finds these, and only the key event tells of those.
      await Promise.all(late.map((id) => store.runOutLongAgo(id)));
      await store.expireSoon(...expired);
      const ended = { deleted: [...endless, ...deleted], expired: [...late, ...expired] };
      const ids = Object.entries(ended).flatMap(([type, some]) => some.map((id) => `${type}-${id}`));
      await eventually(() => {
        expect(ids.filter((id) => !handled.includes(id) || !heard.includes(id))).toEqual([]);
      });
      const alive = await inEach();
      asked = alive[0]!;
      // What a fault keeps from being acknowledged is handled again after the lease.
      await eventually(async () => {
        expect(alive.filter((id) => !handled.includes(`created-${id}`))).toEqual([]);
        expect(await store.pending('default')).toBe(0);
      });
    }

    /** The listeners on all connections, by event. */
    function listeners(): Record<string, number> {
      const { background, request, subscriber, signals } = get<RedisConnections>(REDIS_CONNECTIONS);
      const all: Iterable<EventEmitter>[] = [[background], request.all, subscriber.all, signals.all];
      const sums: Record<string, number> = {};
      for (const client of all.flatMap((each) => [...each])) {
        for (const name of client.eventNames()) {
          sums[String(name)] = (sums[String(name)] ?? 0) + client.listenerCount(name);
        }
      }
      return sums;
    }

    const connections = async () => (String(await store.client.client('LIST')).match(/ user=app /g) ?? []).length;

    it('does all of its work again after each fault, logs each once, and keeps nothing of it', async () => {
      await failAndRecover(1);
      const before = { entries: kept.counts(), listeners: listeners(), connections: await connections() };
      await failAndRecover(2);
      await eventually(
        async () => {
          expect(listeners()).toEqual(before.listeners);
          expect(await connections()).toBe(before.connections);
          // What it knows of each partition may be among them.
          expect(kept.grownSince(before.entries, 4)).toEqual([]);
        },
        { interval: 100 },
      );
    });
  },
);
