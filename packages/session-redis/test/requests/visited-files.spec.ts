import { readFileSync } from 'node:fs';
import { Controller, Get, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Session, SessionModule } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, RedisServer } from '@nest-session/testing';
import { RedisSessionModule } from '../../src/index.js';
import { SourceCoverage } from '../support/source.coverage.js';

LeakGuard.install();

// What a background service does meanwhile is no part of a request: it does not run in each round.
const ROUNDS = 10;

let coverage: SourceCoverage;
let beforeReply: string[] = [];

@Controller()
class VisitController {
  @Get()
  read(@Session() session: Session) {
    const visits = session.getAttribute('visits');
    beforeReply = coverage.take();
    return { visits };
  }

  @Post()
  save(@Session() session: Session) {
    session.setAttribute('visits', session.getAttributeOrDefault('visits', 0) + 1);
    return {};
  }
}

describe('the source files that run', () => {
  let server: RedisServer;
  let app: NestExpressApplication;
  let agent: HttpAgent;
  beforeAll(async () => {
    coverage = new SourceCoverage();
    server = await RedisServer.start();
    @Module({
      imports: [SessionModule.forRoot(), RedisSessionModule.forRoot({ url: server.url })],
      controllers: [VisitController],
    })
    class AppModule {}
    app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: false });
    await app.listen(0, '127.0.0.1');
    agent = new HttpAgent(await app.getUrl());
    await agent.post('/');
    await agent.post('/');
  });
  afterAll(async () => {
    await app.close();
    await server.stop();
    coverage.stop();
  });

  it('until a handler has read an attribute of its session are at most those of docs/evidence/internals.md', async () => {
    const files = await inEachRound(async () => {
      await agent.get('/');
      return beforeReply;
    });
    expect(files).toContain('session-redis/src/repository/redis-session.repository.ts');
    expectFew(files, documented('read'));
  });

  it('until the last byte of a response whose session was saved are at most those of docs/evidence/internals.md', async () => {
    const files = await inEachRound(async () => {
      await agent.post('/');
      return coverage.take();
    });
    expect(files).toContain('session-redis/src/scripts/session/session.scripts.ts');
    expectFew(files, documented('save'));
  });
});

/** What a request runs every time. */
async function inEachRound(request: () => Promise<string[]>): Promise<string[]> {
  let common: string[] | undefined;
  for (let round = 0; round < ROUNDS; round++) {
    coverage.take();
    const files = await request();
    common = common?.filter((file) => files.includes(file)) ?? files;
  }
  return common ?? [];
}

/** The documented number must not rot either: where much less runs, it has to become smaller. */
function expectFew(files: readonly string[], documentedNumber: number): void {
  // The list is what you need to know when there are more.
  expect(files.slice(documentedNumber)).toEqual([]);
  expect(files.length).toBeGreaterThan(documentedNumber - 5);
}

/** The number of files that the documentation gives for a request. */
function documented(kind: 'read' | 'save'): number {
  const page = readFileSync(new URL('../../../../docs/evidence/internals.md', import.meta.url), 'utf8');
  return Number(new RegExp(`\\| ${kind} +\\|[^|]+\\| +(\\d+) +\\|`).exec(page)?.[1]);
}
