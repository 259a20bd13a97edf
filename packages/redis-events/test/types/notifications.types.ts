// What applications write, and what must not compile, against the built types. Checked by npm run typecheck.
import { expectTypeOf } from 'expect-type';
import type { KeyspaceNotificationListener, KeyspaceState } from '@nest-session/redis-events';

export async function listen(listener: KeyspaceNotificationListener): Promise<void> {
  const subscription = listener.listen({
    events: ['expired', 'my-own-event'],
    keys: 'cart:*',
    database: '*',
    handler: ({ key, database }) => {
      expectTypeOf(key).toEqualTypeOf<string>();
      expectTypeOf(database).toEqualTypeOf<number>();
    },
    onGap: ({ since }) => expectTypeOf(since).toEqualTypeOf<number | undefined>(),
    onHealth: ({ state }) => expectTypeOf(state).toEqualTypeOf<KeyspaceState>(),
  });
  // @ts-expect-error read-only
  subscription.health.state = 'stopped';
  await subscription.close();
  // @ts-expect-error events are missing
  listener.listen({ handler: () => undefined });
  // @ts-expect-error the handler is missing
  listener.listen({ events: 'expired' });
  // @ts-expect-error an unknown option
  listener.listen({ events: 'expired', handler: () => undefined, key: 'cart' });
}

type Notifications = typeof import('@nest-session/redis-events');

export type NotForListeners = [
  // @ts-expect-error of @nest-session/redis
  Notifications['RedisSessionModule'],
  // @ts-expect-error internal
  Notifications['NotificationProbe'],
];
