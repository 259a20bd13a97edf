import {
  Controller,
  ForbiddenException,
  Get,
  HttpException,
  type INestApplication,
  Post,
  Res,
  UseGuards,
} from '@nestjs/common';
import type { CanActivate } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { Session, SessionCreationRefusedError, type SessionModuleOptions, SessionRepository } from '../../src/index.js';
import { GatedRepository, replaceMethods } from '../support/gated.repository.js';
import { type RawReply, rawOf } from '../support/raw.response.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

const TOO_MANY = {
  statusCode: 429,
  message: 'Too many new sessions',
  error: 'Too Many Requests',
  reason: 'session-refused',
};

class RefusingGuard implements CanActivate {
  canActivate(): boolean {
    return false;
  }
}

@Controller()
class VisitController {
  @Get('read')
  read(@Session() session: Session) {
    return { visits: session.getAttribute('visits') ?? 0 };
  }

  @Post('nothing')
  async nothing(@Session() session: Session) {
    session.setAttribute('visits', 1);
    session.removeAttribute('visits');
    await session.save();
  }

  @Post('visit')
  visit(@Session() session: Session) {
    session.setAttribute('visits', session.getAttributeOrDefault('visits', 0) + 1);
  }

  @Post('login')
  login(@Session() session: Session) {
    session.signIn('ann');
  }

  @Post('twice')
  async twice(@Session() session: Session) {
    session.setAttribute('visits', 1);
    for (let i = 0; i < 2; i++) await session.save().catch(() => undefined);
  }

  @Post('saves')
  async saves(@Session() session: Session) {
    session.setAttribute('visits', 1);
    await Promise.all([session.save(), session.save()]);
    session.setAttribute('visits', 2);
    await session.save();
  }

  @Post('denied')
  @UseGuards(RefusingGuard)
  denied() {}

  @Post('sent')
  sent(@Session() session: Session, @Res() reply: RawReply) {
    session.setAttribute('visits', 1);
    rawOf(reply).end('sent');
  }
}

describe.each(['express', 'fastify'] as const)('on %s, the option mayCreate', (platform) => {
  type Rule = NonNullable<SessionModuleOptions['mayCreate']>;
  interface Options {
    readonly store?: GatedRepository;
    readonly trustProxy?: string;
    readonly configure?: (app: INestApplication) => unknown;
  }

  async function start(rule: Rule, options: Options = {}) {
    const asked: [method: string | undefined, url: string | undefined, address: string | undefined][] = [];
    const mayCreate: Rule = (request, address) => {
      asked.push([request.method, request.url, address]);
      return rule(request, address);
    };
    const app = await startApp({ platform, controllers: [VisitController], session: { mayCreate }, ...options });
    return { ...app, asked, creations: () => app.store.calls.filter((call) => call === 'create').length };
  }

  it('refuses a new session with a 429 response, and nothing is stored', async () => {
    const { agent, asked, creations, log } = await start(() => false);
    for (const path of ['/visit', '/login', '/sent']) {
      const response = await agent().post(path);
      expect([response.status, response.json(), response.setCookies]).toEqual([429, TOO_MANY, []]);
    }
    expect(asked.map(([, url]) => url)).toEqual(['/visit', '/login', '/sent']);
    expect(creations()).toBe(0);
    expect(log.lines).toEqual([]);
  });

  it('is asked once for each new session, and for nothing else', async () => {
    const { agent, asked, creations } = await start(() => Promise.resolve(true));
    const client = agent();
    expect((await client.get('/read')).status).toBe(200);
    expect((await client.post('/denied')).status).toBe(403);
    expect((await client.post('/nothing')).status).toBe(201);
    expect(asked).toEqual([]);
    for (let i = 0; i < 3; i++) expect((await client.post('/visit')).status).toBe(201);
    expect((await client.post('/login')).status).toBe(201);
    expect((await client.get('/read')).json()).toEqual({ visits: 3 });
    expect((await agent().post('/saves')).status).toBe(201);
    expect(asked.map(([method, url]) => [method, url])).toEqual([
      ['POST', '/visit'],
      ['POST', '/saves'],
    ]);
    expect(creations()).toBe(2);
  });

  it('is asked once by a request that saves again after the refusal, and once where the id was taken', async () => {
    const { agent, asked } = await start(() => false);
    expect((await agent().post('/twice')).status).toBe(429);
    expect(asked).toHaveLength(1);
    const store = new GatedRepository();
    const allowed = await start(() => true, { store });
    let collisions = 0;
    replaceMethods(store, ({ write }) => ({
      write: async (change) => (collisions++ === 0 ? { outcome: 'collision' } : write(change)),
    }));
    expect((await allowed.agent().post('/visit')).status).toBe(201);
    expect([collisions, allowed.asked.length]).toEqual([2, 1]);
  });

  it('can throw the error of its choice', async () => {
    const { agent, creations } = await start(() => {
      throw new ForbiddenException('Not from here');
    });
    const response = await agent().post('/visit');
    expect([response.status, response.json<{ message: string }>().message]).toEqual([403, 'Not from here']);
    expect(creations()).toBe(0);
  });

  it.each<[string, () => HttpException]>([
    ['a body that is no JSON', () => new HttpException({ wait: 5n }, 429)],
    ['no body', () => new HttpException(undefined as never, 429)],
    ['no status', () => new HttpException('Wait', NaN)],
  ])('can throw an error that cannot be sent, which is logged and a 500: one with %s', async (_, errorOf) => {
    const { agent, log } = await start(() => {
      throw errorOf();
    });
    const response = await agent().post('/sent');
    expect([response.status, response.json()]).toEqual([500, { statusCode: 500, message: 'Internal server error' }]);
    expect(log.matching(/could not be saved, so the response is a 500/)).toHaveLength(1);
  });

  it('knows the address of the client, behind a trusted proxy too', async () => {
    const { agent, asked } = await start(() => true, { trustProxy: 'loopback' });
    await agent().post('/visit');
    await agent().post('/visit', undefined, { headers: { 'X-Forwarded-For': '203.0.113.7' } });
    expect(asked.map(([, , address]) => address?.replace('::ffff:', ''))).toEqual(['127.0.0.1', '203.0.113.7']);
  });

  it('is not asked for sessions that are created outside of requests', async () => {
    const { app, asked } = await start(() => false);
    const session = app.get(SessionRepository, { strict: false }).createSession();
    session.signIn('job');
    await expect(session.save()).resolves.toBe('saved');
    expect(asked).toEqual([]);
  });

  it('limits how many sessions an address may open, as in the documentation', async () => {
    const opened = new Map<string, number>();
    const { agent } = await start((_, address = 'unknown') => {
      const count = (opened.get(address) ?? 0) + 1;
      opened.set(address, count);
      return count <= 2;
    });
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await agent().post('/visit')).status);
    expect(statuses).toEqual([201, 201, 429, 429]);
  });
});

it('SessionCreationRefusedError says in logs what has refused', () => {
  expect(new SessionCreationRefusedError()).toMatchObject({
    name: 'SessionCreationRefusedError',
    message: 'The option `mayCreate` refused to let this request create a session',
  });
});
