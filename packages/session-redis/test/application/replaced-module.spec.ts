import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { Injectable, Module, type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { OnSessionEvent, SessionExpiredEvent, SessionModule, SessionRepository } from '@nest-session/core';
import {
  RedisSessionModule,
  type RedisSessionOptionsFactory,
  RedisSessionRepository,
  SessionEventGroups,
} from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { TestClock, SessionEventRecorder, TestSessionModule } from '@nest-session/testing';

LeakGuard.install();

/** A server at the address of Redis that expects no connection. */
let server: Server;
let url: string;
let visitors = 0;

beforeAll(async () => {
  server = createServer((socket) => {
    visitors += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address() as { readonly port: number };
  url = `redis://127.0.0.1:${address.port}`;
});

afterAll(async () => {
  server.close();
  await once(server, 'close');
});

@Injectable()
class Reminders {
  readonly sent: unknown[] = [];

  @OnSessionEvent(SessionExpiredEvent)
  remind({ session }: SessionExpiredEvent): void {
    this.sent.push(session.getAttribute('items'));
  }
}

class Factory implements RedisSessionOptionsFactory {
  createRedisSessionOptions() {
    return { url };
  }
}

@Module({ providers: [Factory], exports: [Factory] })
class FactoryModule {}

const stores: { name: string; store: () => NonNullable<ModuleMetadata['imports']>[number] }[] = [
  { name: 'forRoot', store: () => RedisSessionModule.forRoot({ url }) },
  {
    name: 'forRootAsync with useFactory',
    store: () => RedisSessionModule.forRootAsync({ useFactory: async () => ({ url }) }),
  },
  { name: 'forRootAsync with useClass', store: () => RedisSessionModule.forRootAsync({ useClass: Factory }) },
  {
    name: 'forRootAsync with useExisting',
    store: () => RedisSessionModule.forRootAsync({ imports: [FactoryModule], useExisting: Factory }),
  },
  { name: 'a promise', store: () => Promise.resolve(RedisSessionModule.forRoot({ url })) },
];

function applicationWith(...imports: NonNullable<ModuleMetadata['imports']>): ModuleMetadata {
  @Module({ imports })
  class StoreModule {}

  @Module({ imports: [SessionModule.forRoot(), StoreModule], providers: [Reminders] })
  class AppModule {}

  return { imports: [AppModule] };
}

describe('overrideModule(RedisSessionModule)', () => {
  let testing: TestingModule | undefined;

  afterEach(() => testing?.close());

  it.each(stores)('lets a test run without Redis, with $name', async ({ store }) => {
    testing = await Test.createTestingModule(applicationWith(store()))
      .overrideModule(RedisSessionModule)
      .useModule(TestSessionModule.forRoot())
      .compile();
    await testing.init();
    const repository = testing.get(SessionRepository);
    const session = repository.createSession();
    session.setAttribute('items', ['apple']);
    await session.save();
    await testing.get(TestClock).advance('31m');
    expect(testing.get(Reminders).sent).toEqual([['apple']]);
    expect(testing.get(SessionEventRecorder).count(SessionExpiredEvent, session.id)).toBe(1);
    expect(() => testing?.get(RedisSessionRepository)).toThrow('RedisSessionRepository');
    await testing.close();
    expect(visitors).toBe(0);
  });
});

describe('a provider of the Redis store, when another store replaces it', () => {
  @Injectable()
  class Operators {
    constructor(readonly groups: SessionEventGroups) {}
  }

  const withoutRedis = () =>
    Test.createTestingModule({
      imports: [SessionModule.forRoot(), RedisSessionModule.forRoot({ url })],
      providers: [Operators],
    })
      .overrideModule(RedisSessionModule)
      .useModule(TestSessionModule.forRoot());

  it('is reported as missing by name', async () => {
    await expect(withoutRedis().compile()).rejects.toThrow(/Operators .*SessionEventGroups/);
  });

  it('can be mocked by the test', async () => {
    const standIn = { list: async () => [] };
    const testing = await withoutRedis()
      .useMocker((token) => (token === SessionEventGroups ? standIn : undefined))
      .compile();
    expect(testing.get(Operators).groups).toBe(standIn);
    await testing.close();
  });
});

describe('RedisSessionModule', () => {
  it('rejects a second configuration in any module', async () => {
    const { imports = [] } = applicationWith(RedisSessionModule.forRoot({ url }));
    const twice = Test.createTestingModule({
      imports: [...imports, RedisSessionModule.forRootAsync({ useClass: Factory })],
    });
    await expect(twice.compile()).rejects.toThrow('RedisSessionModule: It is configured twice');
  });

  it('can be imported by several modules as one object', async () => {
    const store = RedisSessionModule.forRoot({ url });
    const testing = await Test.createTestingModule({
      imports: [...(applicationWith(store).imports ?? []), store],
    }).compile();
    expect(testing.get(SessionRepository)).toBeInstanceOf(RedisSessionRepository);
  });
});
