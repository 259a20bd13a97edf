import { Controller, Get, Param, Post } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { ManualClock } from '@nest-session/testing';
import { Session, type SessionModuleOptions, SessionRepository } from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

const MINUTE = 60;

@Controller()
class TimeoutController {
  @Get()
  show(@Session() session: Session) {
    return { name: session.principalName, idle: session.maxInactiveInterval };
  }

  @Post('visit')
  visit(@Session() session: Session) {
    session.setAttribute('visited', true);
    return this.show(session);
  }

  @Post('login/:name')
  login(@Session() session: Session, @Param('name') name: string) {
    session.signIn(name);
    return this.show(session);
  }

  @Post('assign/:name')
  assign(@Session() session: Session, @Param('name') name: string) {
    session.principalName = name === 'nobody' ? undefined : name;
    return this.show(session);
  }

  @Post('interval/:seconds')
  interval(@Session() session: Session, @Param('seconds') seconds: string) {
    session.setAttribute('visited', true);
    session.maxInactiveInterval = Number(seconds);
  }
}

describe.each(['express', 'fastify'] as const)('on %s, a session without a signed-in user', (platform) => {
  async function start(session: SessionModuleOptions = { timeout: '8h', anonymousTimeout: '10m' }) {
    const clock = new ManualClock();
    const store = new GatedRepository({ clock, timeout: 8 * 60 * MINUTE, anonymousTimeout: 10 * MINUTE });
    const app = await startApp({ platform, controllers: [TimeoutController], session, store });
    return { ...app, clock, client: app.agent() };
  }

  it('has the anonymous timeout until a sign-in', async () => {
    const { client, clock, store, agent } = await start();
    expect((await client.post('/visit')).json()).toEqual({ idle: 10 * MINUTE });
    expect((await client.post('/login/ann')).json()).toEqual({ name: 'ann', idle: 480 * MINUTE });
    const other = agent();
    expect((await other.post('/login/ann')).json()).toEqual({ name: 'ann', idle: 480 * MINUTE });
    const visitor = agent();
    await visitor.post('/visit');
    clock.advance(11 * MINUTE * 1000);
    expect((await visitor.get('/')).json()).toEqual({ idle: 10 * MINUTE });
    for (const each of [client, other]) expect((await each.get('/')).json()).toMatchObject({ name: 'ann' });
    // A visit, a sign-in and so on are one write each.
    expect(store.calls.filter((call) => call === 'create' || call === 'update')).toHaveLength(4);
  });

  it('gets the timeout of users with a principal that is assigned, and the other one without', async () => {
    const { client, store } = await start();
    await client.post('/visit');
    expect((await client.post('/assign/ann')).json()).toEqual({ name: 'ann', idle: 480 * MINUTE });
    expect((await client.get('/')).json()).toEqual({ name: 'ann', idle: 480 * MINUTE });
    await client.post('/assign/nobody');
    expect((await client.get('/')).json()).toEqual({ idle: 10 * MINUTE });
    expect(store.calls.filter((call) => call === 'update')).toHaveLength(2);
  });

  it('keeps its own timeout, which the application has set, until a user signs in', async () => {
    const { client } = await start();
    await client.post('/interval/60');
    expect((await client.post('/assign/ann')).json()).toEqual({ name: 'ann', idle: 60 });
    expect((await client.post('/assign/nobody')).json()).toEqual({ idle: 60 });
    expect((await client.post('/login/ann')).json()).toEqual({ name: 'ann', idle: 480 * MINUTE });
  });

  it('keeps a timeout of its own when one principal replaces another one', async () => {
    const { client } = await start();
    await client.post('/login/ann');
    await client.post(`/interval/${10 * MINUTE}`);
    expect((await client.post('/assign/bob')).json()).toEqual({ name: 'bob', idle: 10 * MINUTE });
  });

  it('has it outside of requests, too', async () => {
    const { app } = await start();
    const sessions = app.get(SessionRepository, { strict: false });
    expect(sessions.createSession().maxInactiveInterval).toBe(10 * MINUTE);
    const job = sessions.createSession();
    job.principalName = 'job';
    expect(job.maxInactiveInterval).toBe(480 * MINUTE);
  });
});
