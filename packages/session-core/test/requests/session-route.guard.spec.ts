import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Injectable,
  type Provider,
  Scope,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { type MicroserviceOptions, Transport } from '@nestjs/microservices';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, ManualClock } from '@nest-session/testing';
import {
  KeepSessionIdle,
  MapSessionModule,
  Session,
  SessionModule,
  SessionOutagePolicy,
  SessionRepository,
} from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { closeApps, type SessionAppOptions, startApp } from '../support/session.app.js';

LeakGuard.install();

let asked: string[] = [];

/** Reads the principal of the session, as guards of applications do. */
@Injectable()
class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { url, session } = context.switchToHttp().getRequest<{ url: string; session: Session }>();
    asked.push(url);
    session.getAttribute('user');
    return url !== '/poll/denied';
  }
}

@Injectable({ scope: Scope.REQUEST })
class AuthGuardOfRequest extends AuthGuard {}

@Controller()
class ShopController {
  @Get('login')
  login(@Session() session: Session) {
    session.principalName = 'ann';
  }

  @Get('home')
  @SessionOutagePolicy('anonymous')
  home(@Session() session: Session) {
    return { user: session.principalName ?? 'nobody' };
  }

  @Get('order')
  @SessionOutagePolicy('reject')
  order() {
    return { ordered: true };
  }

  @Get('poll/denied')
  @KeepSessionIdle()
  denied() {}
}

const guards = (...providers: Provider[]): Partial<SessionAppOptions> => ({ providers });

async function hybrid(app: INestApplication): Promise<void> {
  const options = { host: '127.0.0.1', port: 0 };
  app.connectMicroservice<MicroserviceOptions>({ transport: Transport.TCP, options }, { inheritAppConfig: true });
  await app.startAllMicroservices();
}

const APPLICATIONS: Readonly<Record<string, Partial<SessionAppOptions>>> = {
  'an APP_GUARD of the root module': guards({ provide: APP_GUARD, useClass: AuthGuard }),
  'an APP_GUARD that is an object': guards({ provide: APP_GUARD, useValue: new AuthGuard() }),
  'a request-scoped APP_GUARD': guards({ provide: APP_GUARD, useClass: AuthGuardOfRequest }),
  'app.useGlobalGuards()': { configure: (app) => app.useGlobalGuards(new AuthGuard()) },
  'all of them': {
    ...guards({ provide: APP_GUARD, useClass: AuthGuardOfRequest }, { provide: APP_GUARD, useClass: AuthGuard }),
    configure: (app) => app.useGlobalGuards(new AuthGuard()),
  },
  'an APP_GUARD, in a hybrid application': {
    ...guards({ provide: APP_GUARD, useClass: AuthGuard }),
    configure: hybrid,
  },
};

afterEach(closeApps);

describe.each(['express', 'fastify'] as const)('the decorators of a route for its session, on %s,', (platform) => {
  describe.each(Object.entries(APPLICATIONS))('apply before %s:', (_, options) => {
    async function start() {
      const clock = new ManualClock();
      const store = new GatedRepository({ clock });
      const app = await startApp({ ...options, platform, store, controllers: [ShopController] });
      const client = app.agent();
      await client.get('/login');
      asked = [];
      return { ...app, clock, client };
    }

    it('the outage policy anonymous', async () => {
      const { client, store } = await start();
      store.break('load');
      const response = await client.get('/home');
      expect([response.status, response.json()]).toEqual([200, { user: 'nobody' }]);
      expect(asked).toContain('/home');
      store.repair();
      expect((await client.get('/home')).json()).toEqual({ user: 'ann' });
    });

    it('the outage policy reject', async () => {
      const { client, store } = await start();
      store.break('load');
      expect((await client.get('/order')).status).toBe(503);
      expect(asked).toEqual([]);
      store.repair();
      expect((await client.get('/order')).json()).toEqual({ ordered: true });
    });

    it('keeping the session idle, even if the request is denied', async () => {
      const { client, store, clock } = await start();
      const [{ lastAccessedTime } = {}] = await store.findByPrincipalName('ann');
      clock.advance(600_000);
      store.calls.length = 0;
      expect((await client.get('/poll/denied')).status).toBe(403);
      expect(store.calls).toEqual(['load']);
      expect(await store.findByPrincipalName('ann')).toMatchObject([{ lastAccessedTime }]);
    });
  });

  it('apply before the guards of a module under @nestjs/testing', async () => {
    const module = await Test.createTestingModule({
      imports: [SessionModule.forRoot(), MapSessionModule.forRoot()],
      controllers: [ShopController],
      providers: [{ provide: APP_GUARD, useClass: AuthGuard }],
    })
      .overrideProvider(SessionRepository)
      .useValue(new GatedRepository())
      .compile();
    const app = module.createNestApplication(platform === 'express' ? new ExpressAdapter() : new FastifyAdapter(), {
      logger: false,
    });
    await app.listen(0, '127.0.0.1');
    const client = new HttpAgent(await app.getUrl());
    await client.get('/login');
    app.get<GatedRepository>(SessionRepository).break('load');
    expect((await client.get('/home')).json()).toEqual({ user: 'nobody' });
    await app.close();
  });
});
