import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import { Authenticated } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { closeApps, startApp } from '../support/express-session.app.js';

LeakGuard.install();
afterEach(closeApps);

/** Responds as the steps say, of which some come after the first byte. */
@Controller()
class LateController {
  static error: Error | undefined;

  @Get('visit')
  visit(@Req() req: any) {
    sessionOf(req).cart = 1;
  }

  @Get('login')
  login(@Req() req: any) {
    sessionOf(req).userId = 'ann';
  }

  @Get('late')
  async late(@Req() req: any, @Res() res: any, @Query('user') user?: string, @Query('saves') saves?: string) {
    const response = res.raw ?? res;
    if (res.hijack) res.hijack();
    response.write('begun ');
    await new Promise((resolve) => setImmediate(resolve));
    try {
      if (user === undefined) delete sessionOf(req).userId;
      else sessionOf(req).userId = user;
      if (saves !== undefined) await sessionOf(req).save();
    } catch (error) {
      LateController.error = error as Error;
    }
    response.end('done');
  }

  /** Responds by itself, after a save. */
  @Get('own')
  async own(@Req() req: any, @Res() res: any) {
    sessionOf(req).seen = 1;
    await sessionOf(req).save();
    sessionOf(req).userId = 'ann';
    const response = res.raw ?? res;
    if (res.hijack) res.hijack();
    response.end('done');
  }

  @Get('private')
  @Authenticated()
  private(@Req() req: any) {
    return { user: sessionOf(req).userId as string };
  }
}

function sessionOf(req: any) {
  return (req.raw ?? req).session;
}

describe.each(['express', 'fastify'] as const)('after the first byte, on %s', (platform) => {
  async function start() {
    LateController.error = undefined;
    const principal = (session: any) => session.userId as string;
    const { agent, log } = await startApp({ platform, controllers: [LateController], express: { principal } });
    return { browser: agent(), log };
  }

  it.each(['?user=ann&saves=', '?user=ann'])('a login by a property signs nobody in: %s', async (query) => {
    const { browser } = await start();
    await browser.get('/visit');
    const planted = browser.fork();
    await browser.get(`/late${query}`);
    expect((await planted.get('/private')).status).toBe(401);
    expect((await browser.get('/private')).status).toBe(401);
    if (query.includes('saves')) expect(LateController.error?.message).toContain('The session id cannot be changed');
  });

  it('and before it, a login by a property in a response that waits for an earlier save has another id', async () => {
    const { browser } = await start();
    await browser.get('/visit');
    const planted = browser.fork();
    expect((await browser.get('/own')).status).toBe(200);
    expect((await browser.get('/private')).json()).toEqual({ user: 'ann' });
    expect((await planted.get('/private')).status).toBe(401);
  });

  it('a change of the user by a property leaves the former one', async () => {
    const { browser } = await start();
    await browser.get('/login');
    await browser.get('/late?user=bob&saves=');
    expect((await browser.get('/private')).json()).toEqual({ user: 'ann' });
  });

  it.each(['?saves=', ''])('a logout by a property takes effect, as signOut() does: %s', async (query) => {
    const { browser, log } = await start();
    await browser.get('/login');
    const other = browser.fork();
    await browser.get(`/late${query}`);
    await eventually(async () => expect((await browser.get('/private')).status).toBe(401));
    expect((await other.get('/private')).status).toBe(401);
    expect(log.lines.join()).not.toContain('lost');
  });
});
