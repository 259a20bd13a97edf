import { jest } from '@jest/globals';

// What follows is loaded later, and then finds decorators that keep nothing in metadata.
const common = await import('@nestjs/common');
const elsewhere = new Map<unknown, unknown[]>();
const keepElsewhere =
  (...enhancers: unknown[]) =>
  (target: object) =>
    void elsewhere.set(target, enhancers);
jest.unstable_mockModule('@nestjs/common', () => ({ ...common, UseGuards: keepElsewhere }));
const { Controller, Get } = common;
const { LeakGuard } = await import('@nest-session/test-infrastructure');
const { Authenticated, AuthenticatedGuard, Session } = await import('../../src/index.js');
const { closeApps, startApp } = await import('../support/session.app.js');

LeakGuard.install();

afterEach(closeApps);

describe('a version of NestJS that keeps guards elsewhere', () => {
  it('starts, says so, and gets the guard of @Authenticated() from its own decorator', async () => {
    @Controller()
    class Routes {
      @Get()
      save(@Session() session: import('../../src/index.js').Session) {
        session.setAttribute('a', 1);
      }

      @Get('guarded')
      @Authenticated()
      guarded() {}
    }
    const { agent, log } = await startApp({ controllers: [Routes] });
    expect((await agent().get('/')).setCookies).toHaveLength(1);
    expect(elsewhere.get(Routes.prototype.guarded)).toEqual([AuthenticatedGuard]);
    expect(log.matching(/does not keep its guards, interceptors and routes where they are looked for/)).toHaveLength(1);
  });
});
