// An application whose sessions a provider ends, in a process that a test can kill. It runs the built packages.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { SessionModule } from '@nest-session/core';
import { ProviderLogoutModule } from '@nest-session/provider-logout';
import { RedisSessionModule } from '@nest-session/redis';

const { REDIS_URL, ISSUER, PORT } = process.env;

class WorkerModule {}
Module({
  imports: [
    SessionModule.forRoot(),
    RedisSessionModule.forRoot({ url: REDIS_URL, partitions: 4, commandTimeout: '60s', events: { consume: false } }),
    ProviderLogoutModule.forRoot({ issuers: [{ issuer: ISSUER, audience: 'shop' }] }),
  ],
})(WorkerModule);

const app = await NestFactory.create(WorkerModule, { logger: ['error'] });
await app.listen(Number(PORT), '127.0.0.1');
process.stdout.write('ready\n');
