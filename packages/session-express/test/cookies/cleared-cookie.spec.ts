import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { closeApps, startApp } from '../support/express-session.app.js';

LeakGuard.install();
afterEach(closeApps);

@Controller()
class LogoutController {
  static cookie = '';

  @Get('in')
  signIn(@Req() { session }: any) {
    session.userId = 'ann';
  }

  /** As the application signed users out before. */
  @Get('out')
  async signOut(@Req() req: any, @Res() res: any, @Query('how') how?: string) {
    if (how === 'destroy') await req.session.destroy();
    if (how === 'regenerate') await req.session.regenerate();
    const name = LogoutController.cookie;
    if (how === 'raw') return (res.raw ?? res).writeHead(200, { 'Set-Cookie': `${name}=; Max-Age=0` }).end();
    if (res.clearCookie) res.clearCookie(name);
    else res.header('set-cookie', `${name}=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT`);
    res.send('');
  }
}

// A warning comes once in a process, so each test has a name of its own.
it.each([
  ['express', ''],
  ['express', 'raw'],
  ['fastify', ''],
] as const)('a response of %s that removes the old cookie and leaves the session is told of, once', async (...args) => {
  const [platform, how] = args;
  const name = (LogoutController.cookie = `sid-${args.join('-')}`);
  const { agent, log } = await startApp({ platform, controllers: [LogoutController], express: { name } });
  const warnings = () => log.lines.filter((line) => line.includes(`removed the cookie "${name}"`));
  const browser = agent();
  for (const end of ['destroy', 'regenerate']) {
    await browser.get('/in');
    expect((await browser.get(`/out?how=${end}`)).setCookies.join()).toContain(`${name}=;`);
  }
  // Without a session, nobody is signed out.
  await agent().get('/out');
  expect(warnings()).toEqual([]);
  await browser.get('/in');
  for (let call = 0; call < 2; call++) await browser.get(`/out?how=${how}`);
  expect(warnings()).toEqual([expect.stringContaining('call req.session.destroy() instead')]);
});
