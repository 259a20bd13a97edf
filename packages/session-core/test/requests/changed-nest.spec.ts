import { type ArgumentsHost, Catch, Controller, type ExceptionFilter, Get, Redirect } from '@nestjs/common';
import { APP_FILTER, ApplicationConfig, type ModulesContainer } from '@nestjs/core';
import { jest } from '@jest/globals';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { startLast } from '../../src/events/session-event.module.js';
import { KeepSessionIdle, Session, SessionStoreError } from '../../src/index.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();

const FILTERED = 507;

@Catch(SessionStoreError)
class RespondsToFailedSaves implements ExceptionFilter {
  catch(_: SessionStoreError, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<{ status(code: number): { send(body: string): void } }>();
    response.status(FILTERED).send('filtered');
  }
}

/** A class of its own, on which no other application has put an interceptor. */
function newController() {
  @Controller()
  class Saves {
    @Get('save')
    save(@Session() session: Session) {
      session.setAttribute('a', 1);
    }

    @Get('redirect')
    @Redirect('/elsewhere')
    redirect(@Session() session: Session) {
      session.setAttribute('a', 1);
    }

    @Get('nothing')
    nothing() {}
  }
  return Saves;
}

const CONTROLLER = '@nestjs/core/router/router-response-controller.js';
const isIntercepted = (handler: object) => Reflect.hasMetadata('__interceptors__', handler);

afterEach(closeApps);

/** Resolves to the lines about it. */
async function expectInterceptorToSave(): Promise<string[]> {
  const controller = newController();
  const { store, agent, log } = await startApp({
    controllers: [controller],
    providers: [{ provide: APP_FILTER, useClass: RespondsToFailedSaves }],
  });
  const { save, redirect, nothing } = controller.prototype;
  expect([save, redirect, nothing].map(isIntercepted)).toEqual([true, true, false]);
  for (const path of ['/save', '/redirect']) expect((await agent().get(path)).setCookies).toHaveLength(1);
  store.break('create');
  for (const path of ['/save', '/redirect']) expect((await agent().get(path)).status).toBe(FILTERED);
  return log.matching(/sends responses in another way/);
}

describe('a version of NestJS', () => {
  it('whose class for responses has moved: an interceptor saves, and one line says so once', async () => {
    jest.unstable_mockModule(CONTROLLER, () => {
      throw new Error('Cannot find module');
    });
    expect(await expectInterceptorToSave()).toHaveLength(1);
    expect(await expectInterceptorToSave()).toEqual([]);
  });

  it('whose class for responses has no method apply(): an interceptor saves', async () => {
    jest.unstable_mockModule(CONTROLLER, () => ({ RouterResponseController: class {} }));
    await expectInterceptorToSave();
  });

  it('that gives copies of its lists: guards come last, and one line says so', async () => {
    @Controller()
    class Idle {
      @Get('idle')
      @KeepSessionIdle()
      idle(@Session() session: Session) {
        return session.isNew;
      }
    }
    const { app, agent, log } = await startApp({
      controllers: [Idle],
      configure: (each) => {
        const config = each.get(ApplicationConfig);
        const guards = config.getGlobalGuards.bind(config);
        config.getGlobalGuards = () => [...guards()];
      },
    });
    expect((await agent().get('/idle')).status).toBe(200);
    expect(app.get(ApplicationConfig).getGlobalGuards()).toHaveLength(2);
    expect(log.matching(/behind those of the application/)).toHaveLength(1);
  });

  it('without a distance of modules: one line says that handlers of events may be called early', async () => {
    class OwnModule {}
    const { log } = await startApp({});
    startLast(new Map([['own', { metatype: OwnModule }]]) as unknown as ModulesContainer, OwnModule);
    expect(log.matching(/OwnModule cannot start last/)).toHaveLength(1);
  });
});
