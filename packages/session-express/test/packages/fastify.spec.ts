import { Controller, Get, type INestApplication, Post, Req, Res } from '@nestjs/common';
import type { FastifyAdapter } from '@nestjs/platform-fastify';
import csrfProtection from '@fastify/csrf-protection';
import flash from '@fastify/flash';
import { Authenticator } from '@fastify/passport';
import { IndexedSessionRepository } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { Strategy } from 'passport-local';
import { closeApps, startApp } from '../support/express-session.app.js';

LeakGuard.install();
afterEach(closeApps);

const fastifyOf = (app: INestApplication): any => (app.getHttpAdapter() as unknown as FastifyAdapter).getInstance();

@Controller()
class PageController {
  @Get('flash')
  async setFlash(@Req() req: any) {
    req.flash('info', 'saved %s', 'it');
    req.flash('info', 'again');
  }

  @Get('flashed')
  flashed(@Res({ passthrough: true }) reply: any) {
    return { info: reply.flash('info') as unknown };
  }

  @Get('token')
  token(@Res({ passthrough: true }) reply: any) {
    return { token: reply.generateCsrf() as string };
  }

  @Post('form')
  form() {
    return { done: true };
  }

  @Get('cart')
  cart(@Req() { session }: any) {
    session.cart = ['book'];
  }

  @Get('me')
  me(@Req() req: any) {
    return { user: req.user?.id ?? null, cart: req.session.cart ?? null, principal: req.session.principalName ?? null };
  }

  @Post('logout')
  async logout(@Req() req: any) {
    await req.logOut();
  }
}

describe('@fastify/flash', () => {
  it('shows the messages of the last request once', async () => {
    const configure = (app: INestApplication) => fastifyOf(app).register(flash);
    const { agent } = await startApp({ platform: 'fastify', controllers: [PageController], configure });
    const client = agent();
    await client.get('/flash');
    expect((await client.get('/flashed')).json()).toEqual({ info: ['saved it', 'again'] });
    expect((await client.get('/flashed')).json()).toEqual({ info: [] });
  });
});

describe('@fastify/csrf-protection', () => {
  it.each(['@fastify/session', '@fastify/secure-session'])(
    'protects forms by a secret in the session, as of %s',
    async (sessionPlugin) => {
      const { agent } = await startApp({
        platform: 'fastify',
        controllers: [PageController],
        async configure(app) {
          const fastify = fastifyOf(app);
          await fastify.register(csrfProtection, { sessionPlugin });
          fastify.addHook('preHandler', (req: any, reply: any, next: () => void) =>
            req.method === 'POST' ? fastify.csrfProtection(req, reply, next) : next(),
          );
        },
      });
      const client = agent();
      const { token } = (await client.get('/token')).json<{ token: string }>();
      expect((await client.post('/form', {}, { headers: { 'csrf-token': token } })).status).toBe(201);
      expect((await client.post('/form', {})).status).toBe(403);
      const other = client.fork();
      other.clearCookies();
      expect((await other.post('/form', {}, { headers: { 'csrf-token': token } })).status).toBe(403);
    },
  );
});

describe('@fastify/passport', () => {
  async function start(options?: object) {
    const users = new Authenticator(options);
    users.use(
      'local',
      new Strategy((name, password, done) => done(null, password === 'secret' ? { id: name } : false)) as never,
    );
    users.registerUserSerializer(async (user: { id: string }) => user.id);
    users.registerUserDeserializer(async (id: string) => ({ id }));
    const { app, agent } = await startApp({
      platform: 'fastify',
      controllers: [PageController],
      async configure(nest) {
        const fastify = fastifyOf(nest);
        await fastify.register(users.initialize());
        await fastify.register(users.secureSession());
        for (const keepSessionInfo of [false, true]) {
          fastify.post(
            keepSessionInfo ? '/login/keeping' : '/login',
            { preValidation: users.authenticate('local', { authInfo: false, keepSessionInfo } as never) },
            async () => ({}),
          );
        }
      },
    });
    return { agent: agent(), sessions: app.get(IndexedSessionRepository, { strict: false }) };
  }
  const CREDENTIALS = { username: 'ann', password: 'secret' };

  it('signs in under a new id and without the attributes of the visitor', async () => {
    const { agent, sessions } = await start();
    await agent.get('/cart');
    const visitor = agent.fork();
    expect((await agent.post('/login', CREDENTIALS)).status).toBe(200);
    expect(agent.cookie('SESSION')).not.toBe(visitor.cookie('SESSION'));
    expect((await agent.get('/me')).json()).toEqual({ user: 'ann', cart: null, principal: 'ann' });
    expect((await visitor.get('/me')).json()).toEqual({ user: null, cart: null, principal: null });
    expect(await sessions.findByPrincipalName('ann')).toHaveLength(1);
  });

  it('keeps the attributes with keepSessionInfo', async () => {
    const { agent } = await start();
    await agent.get('/cart');
    expect((await agent.post('/login/keeping', CREDENTIALS)).status).toBe(200);
    expect((await agent.get('/me')).json()).toEqual({ user: 'ann', cart: ['book'], principal: 'ann' });
  });

  it('refuses wrong credentials', async () => {
    const { agent } = await start();
    expect((await agent.post('/login', { ...CREDENTIALS, password: 'x' })).status).toBe(401);
  });

  it('signs out: the session loses its user, its principal and its id', async () => {
    const { agent, sessions } = await start();
    await agent.post('/login', CREDENTIALS);
    const old = agent.fork();
    await agent.post('/logout');
    expect((await agent.get('/me')).json()).toEqual({ user: null, cart: null, principal: null });
    expect((await old.get('/me')).json()).toMatchObject({ user: null });
    expect(await sessions.findByPrincipalName('ann')).toEqual([]);
  });
});
