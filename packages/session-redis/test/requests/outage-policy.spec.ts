import { type CanActivate, Controller, type ExecutionContext, Get, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { Session, SessionOutagePolicy } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, RedisServer } from '@nest-session/testing';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

let begun = 0;

@Controller('with')
class PolicyController {
  @Get('required')
  @SessionOutagePolicy('reject')
  required(@Session() session: Session) {
    begun++;
    return { a: session.getAttribute('a') ?? 'nothing' };
  }

  @Get('optional')
  @SessionOutagePolicy('anonymous')
  optional(@Session() session: Session) {
    return { a: session.getAttribute('a') ?? 'nothing' };
  }
}

@Module({ controllers: [PolicyController] })
class PolicyModule {}

/** Reads the session before each handler of these routes, as a guard of an application does. */
class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ url: string; session: Session }>();
    if (request.url.startsWith('/with/')) request.session.getAttribute('a');
    return true;
  }
}

describe.each(['express', 'fastify'] as const)('an outage of Redis, on %s,', (adapter) => {
  let server: RedisServer;
  let app: App;
  let client: HttpAgent;
  beforeAll(async () => {
    // The session survives the outage.
    server = await RedisServer.start({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    const redis = { url: server.url, commandTimeout: '500ms' };
    const providers = [{ provide: APP_GUARD, useClass: AuthGuard }];
    app = await App.start({ adapter, imports: [PolicyModule], providers, redis, handlers: false });
    client = app.agent();
  });
  afterAll(async () => {
    await app.stop();
    await server.stop();
  });

  it('makes each route respond by its policy, and ends without a restart of the application', async () => {
    await eventually(async () => expect((await client.post('/set/a', { value: 'kept' })).status).toBe(201));
    await isKept();
    for (let outage = 1; outage <= 2; outage++) {
      await server.kill();
      begun = 0;
      expect((await client.get('/with/required')).status).toBe(503);
      expect(begun).toBe(0);
      expect((await client.get('/with/optional')).json()).toEqual({ a: 'nothing' });
      expect((await client.get('/plain')).status).toBe(200);
      expect((await client.get('/read')).status).toBe(503);

      await server.restart();
      await isKept();
    }
  });

  /** Retries when the short command timeout has passed on a slow machine. */
  async function isKept(): Promise<void> {
    for (const policy of ['required', 'optional']) {
      await eventually(async () => expect((await client.get(`/with/${policy}`)).json()).toEqual({ a: 'kept' }));
    }
  }
});
