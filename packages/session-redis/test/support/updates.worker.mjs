// An application over HTTP whose requests update an attribute, in a process of its own. It runs the built packages.
import 'reflect-metadata';
import { Controller, Get, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Session, SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';

let calls = 0;
let running = 0;

class UpdatesController {
  start(session) {
    session.setAttribute('count', 0);
    session.setAttribute('filling', 'x'.repeat(Number(process.env.SIZE ?? 0)));
    return {};
  }

  async add(session) {
    running++;
    try {
      await session.updateAttribute('count', (count = 0) => {
        calls++;
        return count + 1;
      });
    } finally {
      running--;
    }
    return {};
  }

  async fill(session) {
    await session.updateAttribute('filling', (text) => text.slice(1) + text[0]);
    return {};
  }

  read(session) {
    return { count: session.getAttribute('count') };
  }

  status() {
    return { calls, running };
  }
}
Controller()(UpdatesController);
for (const [decorator, name] of [
  [Post, 'start'],
  [Post, 'add'],
  [Post, 'fill'],
  [Get, 'read'],
  [Get, 'status'],
]) {
  const method = Object.getOwnPropertyDescriptor(UpdatesController.prototype, name);
  decorator(name)(UpdatesController.prototype, name, method);
  if (name !== 'status') Session()(UpdatesController.prototype, name, 0);
}

class AppModule {}
Module({
  imports: [
    SessionModule.forRoot(),
    RedisSessionModule.forRoot({ url: process.env.REDIS_URL, notifications: 'off', commandTimeout: '30s' }),
  ],
  controllers: [UpdatesController],
})(AppModule);

const app = await NestFactory.create(AppModule, { logger: ['error'] });
await app.listen(0, '127.0.0.1');
process.stdout.write(`listening ${await app.getUrl()}\n`);
