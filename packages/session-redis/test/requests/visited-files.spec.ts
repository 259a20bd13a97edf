import { Controller, Get, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { INestApplication } from '@nestjs/common';
import { Session, SessionModule } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, RedisServer } from '@nest-session/testing';
import { RedisSessionModule } from '../../src/index.js';
import { SourceCoverage } from '../support/source.coverage.js';

LeakGuard.install();

let coverage: SourceCoverage;
let visited: string[] = [];

@Controller()
class VisitController {
  @Get()
  read(@Session() session: Session) {
    const value = session.getAttribute('value');
    visited = coverage?.take();
    return { value };
  }

  @Post()
  save(@Session() session: Session) {
    session.setAttribute('value', session.getAttributeOrDefault('value', 0) + 1);
    return {};
  }
}

describe('x', () => {
  let server: RedisServer;
  let app: INestApplication;
  let agent: HttpAgent;
  beforeAll(async () => {
    server = await RedisServer.start();
    @Module({
      imports: [SessionModule.forRoot(), RedisSessionModule.forRoot({ url: server.url, notifications: 'off' })],
      controllers: [VisitController],
    })
    class M {}
    app = await NestFactory.create(M, { logger: ['error', 'warn'] });
    await app.listen(0);
    agent = new HttpAgent(await app.getUrl());
    await agent.post('/');await agent.get('/');await agent.post('/');
    coverage = new SourceCoverage();
  });
  afterAll(async () => {
    coverage.stop();
    await app.close();
    await server.stop();
  });
  it('y', async () => {
    coverage.take();
    await agent.get('/');
    console.log('read', visited.length, visited.join('\n'));
    coverage.take();
    await agent.post('/');
    const saved = coverage.take();
    console.log('save', saved.length, saved.join('\n'));
  });
});
