import { Injectable } from '@nestjs/common';
import {
  InvalidSessionOptionsError,
  OnSessionEvent,
  SessionDeletedEvent,
  type SessionEvent,
  SessionExpiredEvent,
} from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions, SessionEventGroups } from '@nest-session/redis';
import { LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent } from '@nest-session/testing';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import { resolveRedisDeadlineOptions } from '../../../deadlines/src/redis/redis-deadline.options.js';
import { App, type AppOptions } from '../support/app.fixture.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { keyOf } from '../support/encryption.fixture.js';
import { dump } from '../support/store.dump.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const [A, B] = [keyOf('2026-10'), keyOf('2026-11')];
const SECRET = 'very-secret';

let store: Store;
const running: { stop(): Promise<void> }[] = [];
beforeAll(async () => {
  store = await Store.open();
});
afterEach(async () => {
  for (const each of running.splice(0)) await each.stop();
  EventInstance.log.lines.length = 0;
  await store.client.flushall();
});
afterAll(() => store.close());

async function startApp(options: AppOptions, encryption?: RedisSessionModuleOptions['encryption']): Promise<App> {
  const redis = { url: store.server.url, ...options.redis, ...(encryption ? { encryption } : {}) };
  const app = await App.start({ handlers: false, ...options, redis });
  running.push(app);
  return app;
}

/** The same browser, at another instance. */
function movedTo(app: App, agent: HttpAgent): HttpAgent {
  const moved = app.agent();
  moved.setCookie(`SESSION=${agent.cookie('SESSION')}; Path=/`);
  return moved;
}

async function startHandlers(handlers: new () => object, keys: readonly (typeof A)[], attempts = 10) {
  const redis = { url: store.server.url, encryption: { keys }, events: { attempts } };
  const instance = await EventInstance.start({ redis, providers: [handlers] });
  running.push(instance);
  return instance;
}

describe.each(['express', 'fastify'] as const)('on %s', (adapter) => {
  it('a browser keeps its encrypted session through logins and a rotation of keys', async () => {
    const [old, both, last] = [
      await startApp({ adapter }, { keys: [A] }),
      await startApp({ adapter }, { keys: [B, A] }),
      await startApp({ adapter }, { keys: [B] }),
    ];
    const agent = old.agent();
    await agent.post('/set/cart', { value: SECRET });
    await agent.post('/login/ann');
    await agent.post('/count');
    expect((await dump(store.client)).join('\n')).not.toContain(SECRET);
    await movedTo(both, agent).post('/count');
    const response = await movedTo(last, agent).get('/read');
    expect(response.json()).toMatchObject({ attributes: { cart: SECRET, user: 'ann', count: 2 } });
  });

  it('a session that somebody copies to another namespace opens there with no key, and stays where it was', async () => {
    const encryption = { keys: [A], plainValues: 'refuse' } as const;
    const [shop, admin] = [
      await startApp({ adapter }, encryption),
      await startApp({ adapter, redis: { namespace: 'admin' } }, encryption),
    ];
    const [visitor, signedIn] = [shop.agent(), shop.agent()];
    await visitor.post('/set/cart', { value: SECRET });
    await signedIn.post('/login/ann');
    for (const key of await store.client.keys('nest:session:sessions:*')) {
      const to = key.replace('nest:session', 'admin');
      await store.client.copy(key, to, 'REPLACE');
    }
    const log = new LogRecorder();
    admin.nest.useLogger(log);
    for (const agent of [visitor, signedIn]) {
      expect((await movedTo(admin, agent).get('/read')).status).toBe(503);
      expect((await movedTo(admin, agent).post('/count')).status).toBe(503);
      expect((await agent.get('/read')).status).toBe(200);
    }
    expect(log.lines.join()).toContain('or copied from another namespace');
  });

  it('a missing key is a 503 response and one log line, and the session stays', async () => {
    const [right, wrong] = [await startApp({ adapter }, { keys: [A] }), await startApp({ adapter }, { keys: [B] })];
    const visitor = right.agent();
    await visitor.post('/set/cart', { value: SECRET });
    const agent = movedTo(wrong, visitor);
    const log = new LogRecorder();
    wrong.nest.useLogger(log);
    for (const path of ['/read', '/read']) {
      const { status, text } = await agent.get(path);
      expect(status).toBe(503);
      expect(text).not.toContain(A.id);
    }
    expect((await agent.post('/set/cart', { value: 'other' })).status).toBe(503);
    expect((await agent.get('/plain')).status).toBe(200);
    const lines = log.lines.filter((line) => line.includes(A.id));
    expect(lines).toEqual([expect.stringContaining('but option `encryption.keys` lacks it')]);
    expect((await visitor.get('/read')).json()).toMatchObject({ attributes: { cart: SECRET } });
  });
});

describe('events', () => {
  const cartsOf = (handled: unknown[]) => {
    @Injectable()
    class Carts {
      @OnSessionEvent(SessionDeletedEvent)
      remind({ session, principalName }: SessionDeletedEvent) {
        handled.push([session.getAttribute('cart'), principalName]);
      }
    }
    return Carts;
  };

  /** Ends a session whose event a group wants. */
  async function endSession(encryption: RedisSessionModuleOptions['encryption']): Promise<string> {
    await (await startHandlers(cartsOf([]), [A])).stop();
    const app = await startApp({}, encryption);
    const agent = app.agent();
    await agent.post('/set/cart', { value: SECRET });
    const { id } = (await agent.post('/login/ann')).json<{ id: string }>();
    await agent.post('/logout');
    return id;
  }

  it('have the data in plain text', async () => {
    const handled: unknown[] = [];
    await endSession({ keys: [A] });
    await startHandlers(cartsOf(handled), [B, A]);
    await eventually(() => expect(handled).toEqual([[SECRET, 'ann']]));
  });

  it('that cannot be decrypted are retried, then dead letters, and are replayed with the right key', async () => {
    const handled: unknown[] = [];
    const id = await endSession({ keys: [A] });
    const wrong = await startHandlers(cartsOf(handled), [B], 2);
    await eventually(async () => expect(await store.deadLetters()).toHaveLength(1));
    const [letter] = await wrong.module.get(SessionEventGroups).deadLetters();
    expect(letter).toMatchObject({ event: { id: `deleted-${id}` }, attempts: 2 });
    expect(letter!.reason).toContain(`SessionEncryptionError: A session is encrypted under the key "${A.id}"`);
    expect(() => letter!.event!.session.getAttribute('cart')).toThrow(/encryption.keys/);
    // The copy of the data is encrypted as well.
    const text = (await dump(store.client)).join('\n');
    expect(text).toContain('enc1:');
    expect(text).not.toContain(SECRET);
    await wrong.stop();
    running.splice(running.indexOf(wrong), 1);
    await store.client.del(store.keys.session(id));
    const right = await startHandlers(cartsOf(handled), [B, A]);
    const groups = right.module.get(SessionEventGroups);
    const [again] = await groups.deadLetters();
    expect(again!.event!.session.getAttribute('cart')).toBe(SECRET);
    await groups.replay(again!.id);
    await eventually(() => expect(handled).toEqual([[SECRET, 'ann']]));
  });

  it('of an expiry have the data in plain text', async () => {
    const handled: SessionEvent[] = [];
    @Injectable()
    class Carts {
      @OnSessionEvent(SessionExpiredEvent)
      remind(event: SessionExpiredEvent) {
        handled.push(event);
      }
    }
    await startHandlers(Carts, [A]);
    const app = await startApp({}, { keys: [A] });
    const response = await app.agent().post('/set/cart', { value: SECRET });
    await store.runOutLongAgo(response.json<{ id: string }>().id);
    await app.sweeper.runOnce();
    await eventually(() => expect(handled.map(({ session }) => session.getAttribute('cart'))).toEqual([SECRET]));
  });
});

describe('the option', () => {
  const problemsOf = (encryption: unknown): readonly string[] => {
    try {
      resolveRedisSessionOptions({ encryption } as RedisSessionModuleOptions);
    } catch (error) {
      expect(error).toBeInstanceOf(InvalidSessionOptionsError);
      return (error as InvalidSessionOptionsError).problems;
    }
    return [];
  };
  const key = 'must have a `key` of 32 bytes as base64: `openssl rand -base64 32`.';

  it.each([
    [{ keys: [A] }, []],
    [{ keys: [A, B], plainValues: 'refuse' }, []],
    [{ keys: [{ id: 'url', key: Buffer.from(A.key, 'base64').toString('base64url') }] }, []],
    [{}, ['Option `encryption.keys` must be a list of keys, at least one.']],
    [{ keys: [] }, ['Option `encryption.keys` must be a list of keys, at least one.']],
    [{ keys: A }, ['Option `encryption.keys` must be a list of keys, at least one.']],
    [{ keys: [A, { ...B, id: A.id }] }, ['Option `encryption.keys[1]` has the `id` of an earlier key.']],
    [{ keys: [A, { id: 'short', key: 'c2hvcnQ=' }] }, [`Option \`encryption.keys[1]\` ${key}`]],
    [{ keys: [{ id: 'hex', key: 'ab'.repeat(32) }] }, [`Option \`encryption.keys[0]\` ${key}`]],
    [{ keys: [{ id: 'none' }] }, [`Option \`encryption.keys[0]\` ${key}`]],
    [
      { keys: [null, { ...A, id: 'a:b' }] },
      [0, 1].map(
        (n) => `Option \`encryption.keys[${n}]\` must have an \`id\` of 1 to 64 letters, digits, "-", "_" and ".".`,
      ),
    ],
    [{ keys: [A], plain: 'refuse' }, ['Unknown option `encryption.plain`: known are keys, plainValues.']],
    [{ keys: [A], plainValues: 'no' }, ['Option `encryption.plainValues` must be one of "write", "read", "refuse".']],
  ])('%j has the problems %j', (encryption, problems) => {
    expect(problemsOf(encryption)).toEqual(problems);
  });

  it.each<[string, string | Buffer]>([
    ['zeros', Buffer.alloc(32)],
    ['one byte', Buffer.alloc(32, 'a')],
    ['bytes that count', Buffer.from(Array.from({ length: 32 }, (_, index) => 200 + 3 * index))],
    ['characters that count', '0123456789abcdef0123456789abcdef'],
    ['characters that count down', 'zyxwvutsrqponmlkjihgfedcba987654'],
    ['a placeholder', 'changeme-please-and-then-deploy!'],
    ['a part that repeats', 'Tr0ub4dor&3xyz_Tr0ub4dor&3xyz_Tr'],
  ])('refuses a key of %s, and does not quote it', (_, bytes) => {
    const key = Buffer.from(bytes as string).toString('base64');
    expect(problemsOf({ keys: [A, { id: 'b', key }] })).toEqual([
      'Option `encryption.keys[1]` has a `key` that can be guessed: draw 32 random bytes, as `openssl rand -base64 32` does.',
    ]);
    const ofDeadlines = () => resolveRedisDeadlineOptions({ encryption: { keys: [{ id: 'b', key }] } });
    expect(ofDeadlines).toThrow(/`encryption.keys\[0\]` has a `key` that can be guessed/);
  });

  it('refuses a key that was typed as base64', () => {
    expect(problemsOf({ keys: [{ id: 'b', key: 'changemechangemechangemechangemechangeme123=' }] })).toHaveLength(1);
  });

  it('of the module is checked at start', () => {
    const options = { encryption: { keys: [{ id: 'a', key: SECRET }] } };
    expect(() => resolveRedisSessionOptions(options)).toThrow(expect.not.objectContaining({ message: SECRET }));
    expect(RedisSessionModule.forRoot({ encryption: { keys: [A] } })).toBeDefined();
  });
});
