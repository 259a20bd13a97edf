// What applications write, and what must not compile, against the built types. Checked by npm run typecheck.
import { expectTypeOf } from 'expect-type';
import {
  OnRedisEvent,
  RedisEvent,
  type RedisEventDeadLetter,
  RedisEventGroups,
  type RedisEvents,
  RedisEventsModule,
} from '@nest-session/redis-events';

declare module '@nest-session/redis-events' {
  interface RedisEventTypes {
    'order.paid': { total: number };
    'shop.closed': undefined;
  }
}

export async function record(events: RedisEvents): Promise<void> {
  expectTypeOf(await events.record('order.paid', { total: 1 })).toEqualTypeOf<string>();
  await events.record('shop.closed');
  await events.record('of.no.declared.type');
  await events.record('of.no.declared.type', { any: 'data' });
  // @ts-expect-error the data are missing
  await events.record('order.paid');
  // @ts-expect-error other data
  await events.record('order.paid', { total: '1' });
  // @ts-expect-error it has none
  await events.record('shop.closed', 1);
}

export class Handlers {
  @OnRedisEvent('order.paid')
  paid({ type, data: { total }, at }: RedisEvent<'order.paid'>) {
    expectTypeOf(type).toEqualTypeOf<'order.paid'>();
    expectTypeOf(total).toEqualTypeOf<number>();
    expectTypeOf(at).toEqualTypeOf<number>();
  }

  @OnRedisEvent('order.paid', { broadcast: true })
  @OnRedisEvent('other')
  any({ data }: RedisEvent) {
    expectTypeOf(data).toEqualTypeOf<unknown>();
  }

  @OnRedisEvent('order.paid')
  without() {}

  // @ts-expect-error an event of another type
  @OnRedisEvent('shop.closed')
  wrong({ data }: RedisEvent<'order.paid'>) {
    return data.total;
  }

  // @ts-expect-error an unknown option
  @OnRedisEvent('order.paid', { group: 'a' })
  option() {}
}

export async function groups(of: RedisEventGroups): Promise<void> {
  const [letter] = await of.deadLetters({ group: 'default' });
  expectTypeOf(letter).toEqualTypeOf<RedisEventDeadLetter | undefined>();
  expectTypeOf(letter!.event!.data).toEqualTypeOf<unknown>();
  expectTypeOf(await of.replay(letter!.id)).toEqualTypeOf<'replayed' | 'gone' | 'orphaned' | 'foreign'>();
}

export const modules = [
  RedisEventsModule.forRoot(),
  RedisEventsModule.forRoot({
    sentinels: [{ host: 'a', port: 1 }],
    name: 'm',
    events: { group: 'a', retention: '1d' },
  }),
  RedisEventsModule.forRootAsync({ useFactory: () => ({ url: undefined }) }),
  // @ts-expect-error an option of sessions
  RedisEventsModule.forRoot({ grace: '5m' }),
];

export const event = new RedisEvent({ id: 'a', type: 'order.paid', data: { total: 1 }, at: 0 });
