import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import { Authenticated, Session } from '../../src/index.js';

LeakGuard.install();

@Controller()
class TestController {
  @Get()
  show(@Session() session: Session) {
    return { id: session.id };
  }
}

// No application of this process has a SessionModule.
@Module({ controllers: [TestController] })
class AppModule {}

it('a handler with @Session() says which module is missing', async () => {
  const logger = new LogRecorder();
  const app = await NestFactory.create(AppModule, { logger, abortOnError: false });
  await app.listen(0, '127.0.0.1');
  expect((await new HttpAgent(await app.getUrl()).get('/')).status).toBe(500);
  expect(logger.lines.join()).toContain('add SessionModule.forRoot() to the imports of the root module');
  await app.close();
});

it('an application with @Authenticated() does not start, and says which module is missing', async () => {
  @Controller()
  class GuardedController {
    @Get()
    @Authenticated()
    show() {
      return {};
    }
  }
  @Module({ controllers: [GuardedController] })
  class GuardedModule {}
  await expect(NestFactory.create(GuardedModule, { logger: false, abortOnError: false })).rejects.toThrow(
    'There are no sessions in this application: add SessionModule.forRoot() to the imports of the root module',
  );
});
