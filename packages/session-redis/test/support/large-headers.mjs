// An application that accepts headers which Node.js rejects with 431 by default. It has a process of its own, since the
// limit is an argument of Node.js, and runs the built packages.
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  CompositeSessionIdResolver,
  CookieSessionIdResolver,
  HeaderSessionIdResolver,
  Session,
  SessionModule,
} from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';

class ReadController {
  read(session) {
    return { isNew: session.isNew };
  }
}
Controller()(ReadController);
Get('read')(ReadController.prototype, 'read', Object.getOwnPropertyDescriptor(ReadController.prototype, 'read'));
Session()(ReadController.prototype, 'read', 0);

const sessionIdResolver = new CompositeSessionIdResolver(
  HeaderSessionIdResolver.xAuthToken(),
  new CookieSessionIdResolver(),
);

class AppModule {}
Module({
  imports: [
    SessionModule.forRoot({ sessionIdResolver }),
    RedisSessionModule.forRoot({ url: process.env.REDIS_URL, notifications: 'off', commandTimeout: '1m' }),
  ],
  controllers: [ReadController],
})(AppModule);

const adapter = process.env.ADAPTER === 'fastify' ? [new FastifyAdapter()] : [];
const app = await NestFactory.create(AppModule, ...adapter, { logger: ['error'] });
await app.listen(0, '127.0.0.1');
process.stdout.write(`listening ${await app.getUrl()}\n`);
