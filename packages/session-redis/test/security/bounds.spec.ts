import { jest } from '@jest/globals';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { Body, Controller, Get, type INestApplication, Module, Param, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  CsrfToken,
  MapSessionModule,
  Session,
  SessionModule,
  type SessionModuleOptions,
  SessionRepository,
} from '@nest-session/core';
import { storePrimitivesOf } from '@nest-session/core/internal';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { PATIENCE } from '../support/patience.js';

LeakGuard.install();

const TOO_LARGE = {
  statusCode: 413,
  message: 'Session data too large',
  error: 'Payload Too Large',
  reason: 'session-too-large',
};
const MINUTE = 60;

@Controller()
class BoundsController {
  @Post('set/:name')
  set(@Session() session: Session, @Param('name') name: string, @Body('value') value: unknown) {
    session.setAttribute(name, value);
  }

  @Post('long-name/:length')
  longName(@Session() session: Session, @Param('length') length: string) {
    session.setAttribute('n'.repeat(Number(length)), 1);
  }

  @Post('fill/:count')
  fill(@Session() session: Session, @Param('count') count: string) {
    for (let i = 0; i < Number(count); i++) session.setAttribute(`name ${i}`, i);
  }

  @Post('push/:name')
  push(@Session() session: Session, @Param('name') name: string, @Body('value') value: string) {
    return session.updateAttribute<string[]>(name, (list = []) => [...list, value]);
  }

  @Post('put/:name')
  put(@Session() session: Session, @Param('name') name: string, @Body('value') value: string) {
    return session.updateAttribute(name, () => value);
  }

  @Post('change/:name')
  change(@Session() session: Session, @Param('name') name: string, @Body('value') value: string) {
    session.getRequiredAttribute<string[]>(name).push(value);
  }

  @Post('login/:name')
  login(@Session() session: Session, @Param('name') name: string) {
    session.signIn(name);
  }

  @Get('form')
  form(@CsrfToken() token: string) {
    return { token };
  }

  @Get()
  show(@Session() session: Session) {
    const { id, principalName, maxInactiveInterval, attributeNames } = session;
    return { id, principalName, maxInactiveInterval, attributes: attributeNames.length };
  }
}

interface Shown {
  readonly id: string;
  readonly principalName?: string;
  readonly maxInactiveInterval: number;
  readonly attributes: number;
}

let redis: RedisServer;
let client: Redis;
let running: INestApplication[] = [];
beforeAll(async () => {
  redis = await RedisServer.start();
  client = new Redis(redis.url);
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((app) => app.close()));
  await client.flushall();
});
afterAll(async () => {
  client.disconnect();
  await redis.stop();
});

const STORES = {
  memory: () => MapSessionModule.forRoot(),
  Redis: () => RedisSessionModule.forRoot({ url: redis.url, notifications: 'off', commandTimeout: PATIENCE }),
};

async function start(store: keyof typeof STORES, platform: 'express' | 'fastify', session: SessionModuleOptions = {}) {
  @Module({ imports: [SessionModule.forRoot(session), STORES[store]()], controllers: [BoundsController] })
  class BoundsModule {}
  const log = new LogRecorder();
  const adapter = platform === 'fastify' ? new FastifyAdapter() : new ExpressAdapter();
  const app = await NestFactory.create(BoundsModule, adapter, { logger: log, abortOnError: false });
  await app.listen(0, '127.0.0.1');
  running.push(app);
  const origin = await app.getUrl();
  const agent = () => new HttpAgent(origin, { secure: session.security === 'strict' });
  const shown = async (of: HttpAgent) => (await of.get('/')).json<Shown>();
  return { app, log, agent, shown, sessions: app.get(SessionRepository, { strict: false }) };
}

/** Sends the headers of a request, and the first byte of its body. `finish()` sends the rest; its status. */
function late(agent: Agent, url: string, cookie: string, content: unknown) {
  const body = JSON.stringify(content);
  const headers = { cookie, 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
  const sent = request(url, { agent, method: 'POST', headers });
  sent.write(body.slice(0, 1));
  return {
    async finish(): Promise<number> {
      sent.end(body.slice(1));
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      response.resume();
      return response.statusCode!;
    },
  };
}

const ROWS = [
  { store: 'memory', platform: 'express' },
  { store: 'memory', platform: 'fastify' },
  { store: 'Redis', platform: 'express' },
  { store: 'Redis', platform: 'fastify' },
] as const;

describe.each(ROWS)('with sessions in $store, on $platform', ({ store, platform }) => {
  it('100,000 attributes are refused with a 413 response, and are no outage of the store (L5)', async () => {
    const { agent, log, shown } = await start(store, platform);
    const visitor = agent();
    const response = await visitor.post('/fill/100000');
    expect([response.status, response.json()]).toEqual([413, TOO_LARGE]);
    // What the handler set before it threw is saved.
    expect((await shown(visitor)).attributes).toBe(256);
    expect((await visitor.post('/set/one-more', { value: 1 })).status).toBe(413);
    expect(log.lines.join('\n')).not.toContain('session store failed');
  });

  it('as many attributes as the option allows at most are stored', async () => {
    const { agent, shown } = await start(store, platform, { maxAttributes: 10_000 });
    const visitor = agent();
    expect((await visitor.post('/fill/10000')).status).toBe(201);
    expect((await shown(visitor)).attributes).toBe(10_000);
    expect((await visitor.post('/set/one-more', { value: 1 })).status).toBe(413);
  });

  it('what is too large is refused wherever it is written, and nothing of it is stored', async () => {
    const { agent, shown } = await start(store, platform, { maxAttributeSize: 1000, maxSessionSize: 1500 });
    const visitor = agent();
    expect((await visitor.post('/set/list', { value: [] })).status).toBe(201);
    const { attributes } = await shown(visitor);
    const requests: [path: string, value: string][] = [
      ['/set/large', 'x'.repeat(1000)],
      ['/set/large', 'ä'.repeat(500)],
      ['/push/list', 'x'.repeat(1000)],
      ['/push/other', 'x'.repeat(1000)],
      ['/change/list', 'x'.repeat(1000)],
      ['/long-name/257', 'x'],
    ];
    for (const [path, value] of requests) {
      const response = await visitor.post(path, { value });
      expect([path, response.status, response.json()]).toEqual([path, 413, TOO_LARGE]);
    }
    expect((await shown(visitor)).attributes).toBe(attributes);
    expect((await visitor.post('/push/list', { value: 'x'.repeat(900) })).status).toBe(201);
    for (const path of ['/set/other', '/push/other', '/change/list']) {
      expect((await visitor.post(path, { value: 'x'.repeat(700) })).status).toBe(413);
    }
    expect((await visitor.post('/set/other', { value: 'x'.repeat(400) })).status).toBe(201);
  });

  it('requests whose bodies come late make a session hold no more than the bounds allow together (H2)', async () => {
    const bounds = { maxAttributes: 100, maxAttributeSize: 1000, maxSessionSize: 40_000 };
    const { app, sessions } = await start(store, platform, bounds);
    const [origin, agent] = [await app.getUrl(), new Agent()];
    for (const [value, stored] of [
      ['x'.repeat(900), 44],
      ['x', 100],
    ] as const) {
      const loads = jest.spyOn(sessions, 'findByIds');
      const visitor = new HttpAgent(origin);
      const [cookie = ''] = (await visitor.post('/set/name', { value: 1 })).setCookies;
      const routes = Array.from({ length: 150 }, (_, i) => `/${i % 2 ? 'set' : 'put'}/draft.${i}`);
      const before = loads.mock.calls.length;
      const requests = routes.map((route) => late(agent, `${origin}${route}`, cookie.split(';')[0]!, { value }));
      await eventually(() => expect(loads.mock.calls.length).toBe(before + routes.length));
      await Promise.all(loads.mock.results.map(({ value: loaded }) => loaded));
      const statuses = await Promise.all(requests.map((each) => each.finish()));
      expect(new Set(statuses)).toEqual(new Set([201, 413]));
      const { id } = (await visitor.get('/')).json<Shown>();
      const { attributeNames } = (await sessions.findById(id))!;
      expect(attributeNames).toHaveLength(1 + statuses.filter((status) => status === 201).length);
      expect(attributeNames.length).toBe(stored);
      if (store === 'Redis') {
        const usage = await client.memory('USAGE', `nest:session:sessions:${id}`, 'SAMPLES', 0);
        expect(usage).toBeLessThan(2 * bounds.maxSessionSize);
      }
      loads.mockRestore();
    }
    agent.destroy();
  });

  it('what was stored before a bound stays readable, and can be changed while it does not grow', async () => {
    const { agent, sessions } = await start(store, platform, { maxAttributes: 2, maxAttributeSize: 1000 });
    const session = sessions.createSession();
    session.setAttribute('a', 1);
    await session.save();
    const more = new Map(['b', 'c', 'd'].map((name) => [name, `"${'x'.repeat(5000)}"`]));
    await storePrimitivesOf(sessions).write({ kind: 'update', id: session.id, attributes: more, indexes: new Map() });
    const loaded = (await sessions.findById(session.id))!;
    expect(loaded.getAttribute('b')).toBe('x'.repeat(5000));
    loaded.setAttribute('a', 2);
    loaded.setAttribute('c', 'smaller');
    await expect(loaded.save()).resolves.toBe('saved');
    expect(() => loaded.setAttribute('e', 1)).toThrow('would be attribute 5 of its session');
    expect((await sessions.findById(session.id))!.attributeNames).toHaveLength(4);
    expect((await agent().get('/')).status).toBe(200);
  });

  it('a planted full session locks no user out', async () => {
    const { agent, shown } = await start(store, platform, { maxAttributes: 10 });
    const visitor = agent();
    expect((await visitor.post('/fill/10')).status).toBe(201);
    expect((await visitor.post('/login/ann')).status).toBe(201);
    expect(await shown(visitor)).toMatchObject({ principalName: 'ann', attributes: 11 });
  });

  it('a session has the anonymous timeout until a user signs in', async () => {
    const { agent, shown } = await start(store, platform, { timeout: '8h', anonymousTimeout: '10m' });
    const visitor = agent();
    await visitor.post('/set/a', { value: 1 });
    const { id, ...anonymous } = await shown(visitor);
    expect(anonymous).toEqual({ maxInactiveInterval: 10 * MINUTE, attributes: 1 });
    if (store === 'Redis') {
      const left = await client.pttl(`nest:session:sessions:expires:${id}`);
      expect(left).toBeLessThanOrEqual(10 * MINUTE * 1000);
    }
    await visitor.post('/login/ann');
    const signedIn = await shown(visitor);
    expect(signedIn).toMatchObject({ principalName: 'ann', maxInactiveInterval: 480 * MINUTE });
    if (store === 'Redis') {
      const left = await client.pttl(`nest:session:sessions:expires:${signedIn.id}`);
      expect(left).toBeGreaterThan(470 * MINUTE * 1000);
    }
  });

  it('a page with a CSRF token stores nothing for a visitor, and asks the store nothing', async () => {
    const { agent } = await start(store, platform);
    await client.config('RESETSTAT');
    for (let i = 0; i < 50; i++) {
      const response = await agent().get('/form');
      expect([response.json<{ token: string }>().token.length, response.setCookies.length]).toEqual([86, 1]);
    }
    expect(await client.keys('*sessions*')).toEqual([]);
    expect(await client.info('commandstats')).not.toMatch(/^cmdstat_(?:evalsha|hgetall):/m);
  });

  it('a visitor costs little in strict mode, and other requests count', async () => {
    const { agent, shown, sessions } = await start(store, platform, { security: 'strict' });
    const visitor = agent();
    expect((await visitor.post('/set/list', { value: ['x'.repeat(12_000)] })).status).toBe(201);
    const { id, maxInactiveInterval } = await shown(visitor);
    expect(maxInactiveInterval).toBe(10 * MINUTE);
    const [one, other] = [await sessions.findById(id), await sessions.findById(id)];
    one!.setAttribute('one', 'x'.repeat(3000));
    other!.setAttribute('other', 'x'.repeat(3000));
    expect(await one!.save()).toBe('saved');
    await expect(other!.save()).rejects.toThrow(/together with what other requests have stored/);
    expect((await visitor.post('/set/more', { value: 'x'.repeat(4000) })).status).toBe(413);
    expect((await visitor.post('/login/ann')).status).toBe(201);
    expect((await visitor.post('/set/more', { value: 'x'.repeat(40_000) })).status).toBe(201);
  });

  it('a new session that the application refuses is not stored', async () => {
    const allowed = new Set(['/set/a', '/login/ann']);
    const { agent } = await start(store, platform, { mayCreate: async ({ url = '' }) => allowed.has(url) });
    const refused = await agent().post('/set/b', { value: 1 });
    expect([refused.status, refused.setCookies]).toEqual([429, []]);
    expect(await client.keys('nest:session:sessions:*')).toEqual([]);
    const visitor = agent();
    expect((await visitor.post('/set/a', { value: 1 })).status).toBe(201);
    expect((await visitor.post('/set/b', { value: 1 })).status).toBe(201);
    expect((await agent().post('/login/ann')).status).toBe(201);
    expect((await agent().post('/login/bob')).status).toBe(429);
  });
});

it('a principal that is assigned costs no command more for its timeout', async () => {
  const commandsOf = async (session: SessionModuleOptions) => {
    const { sessions, app } = await start('Redis', 'express', session);
    const created = sessions.createSession();
    created.setAttribute('a', 1);
    await created.save();
    const loaded = (await sessions.findById(created.id))!;
    await client.config('RESETSTAT');
    loaded.principalName = 'ann';
    await loaded.save();
    const stats = await client.info('commandstats');
    const interval = await client.hget(`nest:session:sessions:${loaded.id}`, 'maxInactiveInterval');
    await app.close();
    running = [];
    const calls = [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].map(([, count]) => Number(count));
    return { scripts: calls.reduce((sum, count) => sum + count, 0), interval };
  };
  expect(await commandsOf({ timeout: '30m' })).toEqual({ scripts: 1, interval: '1800' });
  expect(await commandsOf({ timeout: '30m', anonymousTimeout: '5m' })).toEqual({ scripts: 1, interval: '1800' });
});
