// What applications write, and what must not compile, against the built types. Checked by npm run typecheck.
import { expectTypeOf } from 'expect-type';
import { Redis } from 'ioredis';
import { IndexedSessionRepository, SessionStoreError } from '@nest-session/core';
import {
  RedisSessionModule,
  type SessionEncryptionError,
  type RedisSessionRepository,
  type SessionEventGroups,
  type SessionExpirationSweeper,
} from '@nest-session/redis';

export function options(): unknown[] {
  return [
    RedisSessionModule.forRoot(),
    RedisSessionModule.forRoot({
      client: new Redis(),
      grace: '5m',
      cleanup: { batchSize: 100 },
      events: { group: 'web', deadLetters: { retention: '30d' } },
    }),
    RedisSessionModule.forRootAsync({ useFactory: (url: string) => ({ url }), inject: ['URL'] }),
    RedisSessionModule.forRoot({ url: 'rediss://localhost', tls: { ca: 'PEM', servername: 'redis.internal' } }),
    // @ts-expect-error options of TLS, not whether
    RedisSessionModule.forRoot({ url: 'rediss://localhost', tls: true }),
    // @ts-expect-error an unknown option
    RedisSessionModule.forRoot({ uri: 'redis://localhost' }),
    // @ts-expect-error a number has no unit
    RedisSessionModule.forRoot({ commandTimeout: 1000 }),
    // @ts-expect-error no such value
    RedisSessionModule.forRoot({ notifications: 'on' }),
    // @ts-expect-error an unknown option of a section
    RedisSessionModule.forRoot({ events: { groups: 'web' } }),
    // @ts-expect-error a number has no unit
    RedisSessionModule.forRoot({ events: { deadLetters: { retention: 30 } } }),
    // @ts-expect-error a client, not its options
    RedisSessionModule.forRoot({ client: { host: 'localhost' } }),
    RedisSessionModule.forRoot({ encryption: { keys: [{ id: 'a', key: 'base64' }], plainValues: 'refuse' } }),
    // @ts-expect-error encryption without keys
    RedisSessionModule.forRoot({ encryption: { plainValues: 'refuse' } }),
    // @ts-expect-error a key without its id
    RedisSessionModule.forRoot({ encryption: { keys: [{ key: 'base64' }] } }),
    // @ts-expect-error an option of SessionModule
    RedisSessionModule.forRoot({ timeout: '30m' }),
  ];
}

export async function operate(sessions: RedisSessionRepository, groups: SessionEventGroups): Promise<void> {
  expectTypeOf(sessions).toExtend<IndexedSessionRepository>();
  expectTypeOf(await groups.remove('web')).toEqualTypeOf<'removed' | 'live' | 'unknown'>();
  const [group] = await groups.list();
  expectTypeOf(group?.lag).toEqualTypeOf<number | undefined>();
  expectTypeOf(group?.lostDeadLetters).toEqualTypeOf<number | undefined>();
  const [letter] = await groups.deadLetters();
  expectTypeOf(letter?.omittedBytes).toEqualTypeOf<number | undefined>();
  expectTypeOf(letter?.handler).toEqualTypeOf<string | undefined>();
  // @ts-expect-error read-only
  if (group) group.lag = 0;
}

export function explain(error: SessionEncryptionError): void {
  expectTypeOf(error).toExtend<SessionStoreError>();
  expectTypeOf(error.keyId).toEqualTypeOf<string | undefined>();
  expectTypeOf(error.attributeName).toEqualTypeOf<string | undefined>();
}

export async function sweep(sweeper: SessionExpirationSweeper): Promise<void> {
  expectTypeOf((await sweeper.runOnce({ ahead: 60_000 })).claimed).toEqualTypeOf<number>();
  // @ts-expect-error an unknown option
  await sweeper.runOnce({ before: 60_000 });
}

type RedisEntry = typeof import('@nest-session/redis');

export type NotForApplications = [
  // @ts-expect-error of @nest-session/redis-events
  RedisEntry['KeyspaceNotificationListener'],
  // @ts-expect-error of @nest-session/core
  RedisEntry['SessionModule'],
  // @ts-expect-error internal
  RedisEntry['SessionKeys'],
  // @ts-expect-error internal
  RedisEntry['SessionScripts'],
];
