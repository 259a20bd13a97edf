import { readFileSync } from 'node:fs';
import { Controller, Get, Injectable, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { OnSessionEvent, Session, SessionExpiredEvent, SessionModule } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { RedisSessionModule } from '../../src/index.js';
import { SourceCoverage, type SourcesRun } from '../support/source.coverage.js';

LeakGuard.install();

// What a background service does meanwhile is no part of a walk: it does not run in each round.
const ROUNDS = 10;

let coverage: SourceCoverage;
let handled: (run: SourcesRun) => void = () => undefined;

@Controller()
class VisitController {
  @Get()
  read(@Session() session: Session) {
    return { visits: session.getAttribute('visits') };
  }

  @Post()
  save(@Session() session: Session) {
    session.setAttribute('visits', session.getAttributeOrDefault('visits', 0) + 1);
    return { id: session.id };
  }
}

@Injectable()
class Reminder {
  @OnSessionEvent(SessionExpiredEvent)
  remind() {
    handled(coverage.take());
  }
}

describe('the sources that run', () => {
  let server: RedisServer;
  let app: NestExpressApplication;
  let url: string;
  let agent: HttpAgent;
  let redis: Redis;
  beforeAll(async () => {
    coverage = new SourceCoverage();
    server = await RedisServer.start();
    @Module({
      imports: [SessionModule.forRoot(), RedisSessionModule.forRoot({ url: server.url })],
      controllers: [VisitController],
      providers: [Reminder],
    })
    class AppModule {}
    app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: false });
    await app.listen(0, '127.0.0.1');
    redis = new Redis(server.url);
    url = await app.getUrl();
    agent = new HttpAgent(url);
    await agent.post('/');
    await agent.post('/');
  });
  afterAll(async () => {
    redis.disconnect();
    await app.close();
    await server.stop();
    coverage.stop();
  });

  it('until the last byte of a response whose handler read an attribute are at most those of docs/evidence/internals.md', async () => {
    const run = await inEachRound(async () => {
      await agent.get('/');
      return coverage.take();
    });
    expect(run.files).toContain('session-redis/src/repository/redis-session.repository.ts');
    expectFew(run, 'read');
  });

  it('until the last byte of a response whose session was saved are at most those of docs/evidence/internals.md', async () => {
    const run = await inEachRound(async () => {
      await agent.post('/');
      return coverage.take();
    });
    expect(run.files).toContain('session-redis/src/scripts/session/session.scripts.ts');
    expectFew(run, 'save');
  });

  it('until a handler is called with a session that expired are at most those of docs/evidence/internals.md', async () => {
    const run = await inEachRound(async () => {
      const { id } = (await new HttpAgent(url).post('/')).json<{ id: string }>();
      const run = new Promise<SourcesRun>((resolve) => (handled = resolve));
      coverage.take();
      await redis.pexpire(`nest:session:sessions:expires:${id}`, 1);
      return run;
    });
    expect(run.files).toContain('session-core/src/session/session-snapshot.ts');
    expectFew(run, 'expiry');
  });
});

interface Common {
  readonly files: readonly string[];
  /** A function is its file and where its text begins. */
  readonly functions: readonly string[];
}

/** What runs every time. */
async function inEachRound(walk: () => Promise<SourcesRun>): Promise<Common> {
  let common: string[] | undefined;
  for (let round = 0; round < ROUNDS; round++) {
    coverage.take();
    const run = await walk();
    const functions = [...run].flatMap(([path, starts]) => starts.map((start) => `${path}:${start}`));
    common = common?.filter((each) => functions.includes(each)) ?? functions;
  }
  const functions = common ?? [];
  return { functions, files: [...new Set(functions.map((each) => each.slice(0, each.indexOf(':'))))].sort() };
}

/** The documented numbers must not rot either: where much less runs, they have to become smaller. */
function expectFew({ files, functions }: Common, walk: string): void {
  const documented = documentedNumbers(walk);
  // The list is what you need to know when there are more.
  expect(files.slice(documented.files)).toEqual([]);
  expect(files.length).toBeGreaterThan(documented.files - 5);
  if (documented.functions === undefined) return;
  expect(functions.slice(documented.functions)).toEqual([]);
  expect(functions.length).toBeGreaterThan(documented.functions - 20);
}

/** The numbers of files and functions that the documentation gives for a walk; of functions, it may give none. */
function documentedNumbers(walk: string): { readonly files: number; readonly functions: number | undefined } {
  const page = readFileSync(new URL('../../../../docs/evidence/internals.md', import.meta.url), 'utf8');
  const [, files, functions] = new RegExp(`\\| ${walk} +\\|[^|]+\\| +(\\d+) +\\| +(\\d+|-) +\\|`).exec(page) ?? [];
  return { files: Number(files), functions: functions === '-' ? undefined : Number(functions) };
}
