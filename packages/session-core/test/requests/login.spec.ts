import { Controller, Get, Post } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RememberMe, Session } from '../../src/index.js';
import type { GatedStore } from '../support/gated.repository.js';
import { closeApps, type SessionApp, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

let store: GatedStore;

@Controller()
class LoginController {
  constructor(private readonly rememberMe: RememberMe) {}

  @Post('start')
  start(@Session() session: Session) {
    session.setAttribute('a', 1);
  }

  @Get('me')
  me(@Session() session: Session) {
    return { user: session.principalName ?? null };
  }

  @Post('login')
  login(@Session() session: Session) {
    session.changeSessionId();
    session.principalName = 'victim';
  }

  @Post('login-that-fails')
  loginThatFails(@Session() session: Session) {
    session.principalName = 'victim';
    // Without the option `cookie.rememberMe`.
    this.rememberMe.remember(session);
  }

  @Post('login-and-more')
  async loginAndMore(@Session() session: Session) {
    session.changeSessionId();
    session.principalName = 'victim';
    await session.save();
    store.break('update');
    session.setAttribute('more', 1);
  }
}

describe.each(['express', 'fastify'] as const)('a login, on %s,', (platform) => {
  let app: SessionApp;
  beforeEach(async () => {
    app = await startApp({ platform, controllers: [LoginController] });
    store = app.store;
  });

  it('that fails in RememberMe signs in no user under a planted token', async () => {
    const attacker = app.agent();
    await attacker.post('/start');
    const victim = attacker.fork();
    expect((await victim.post('/login-that-fails')).status).toBe(500);
    expect((await attacker.get('/me')).json()).toEqual({ user: null });
  });

  it('sends its new token although a later save of the same request fails', async () => {
    const client = app.agent();
    await client.post('/start');
    const old = client.fork();
    const response = await client.post('/login-and-more');
    expect(response).toMatchObject({ status: 503, setCookies: [expect.stringContaining('SESSION=')] });
    expect(response.headers['cache-control']).toContain('no-store');
    store.repair();
    expect((await client.get('/me')).json()).toEqual({ user: 'victim' });
    expect((await old.get('/me')).json()).toEqual({ user: null });
  });
});
