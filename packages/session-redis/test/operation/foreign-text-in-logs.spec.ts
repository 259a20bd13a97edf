import { randomUUID } from 'node:crypto';
import { Body, Controller, Injectable, Post } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import {
  CookieSessionIdResolver,
  OnSecurityEvent,
  OnSessionEvent,
  Session,
  SessionCreatedEvent,
} from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { LineRecorder } from '../support/line.recorder.js';

LeakGuard.install();

/** What a client may send where an application lets it choose a name or a value (L8). */
const EVIL = 'evil\n\u001b[31m[Nest] 1 - LOG [Auth] admin signed in\r\u009b0m\u2028';
const RAW = /[\p{Cc}\u2028]/u;

@Controller()
class NameController {
  @Post('set')
  set(@Session() session: Session, @Body() { name, value }: { name: string; value: unknown }) {
    session.setAttribute(name, value);
    return { id: session.id, read: session.getAttribute(name) };
  }

  @Post('read')
  read(@Session() session: Session, @Body() { name }: { name: string }) {
    return { read: session.getAttribute(name) ?? null };
  }
}

/** Handlers whose errors quote what a client has sent. */
@Injectable()
class Failing {
  @OnSessionEvent(SessionCreatedEvent)
  group() {
    throw new Error(EVIL);
  }

  @OnSessionEvent(SessionCreatedEvent, { broadcast: true })
  broadcast() {
    throw new TypeError(`${EVIL}\n    at forged (/evil.js:1:1)`);
  }

  @OnEvent('session.created', { suppressErrors: false })
  listener() {
    throw new Error(EVIL);
  }

  @OnSecurityEvent()
  security() {
    throw new Error(EVIL);
  }
}

class FailingResolver extends CookieSessionIdResolver {
  override send(...args: Parameters<CookieSessionIdResolver['send']>): void {
    super.send(...args);
    if (args[0].headers['x-evil']) throw new Error(EVIL);
  }
}

describe('foreign text in the log', () => {
  const log = new LineRecorder();
  let server: RedisServer;
  let client: Redis;
  let app: App;
  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    app = await App.start({
      session: {
        sessionIdResolver: new FailingResolver(),
      },
      redis: { url: server.url, cleanup: { cron: '* * * * * *' }, events: { attempts: 1, group: `group ${EVIL}` } },
      imports: [EventEmitterModule.forRoot()],
      controllers: [NameController],
      providers: [Failing],
    });
    log.install();
  });
  afterAll(async () => {
    await app.stop();
    client.disconnect();
    await server.stop();
  });
  afterEach(() => {
    for (const line of log.lines) {
      const [first, ...others] = line.split('\n');
      // The frames of a stack, and no other lines.
      for (const other of others) expect(other).toMatch(/^ {4}at (?!forged)/);
      for (const each of [first, ...others]) expect(each).not.toMatch(RAW);
    }
  });

  const isLogged = (...lines: RegExp[]) =>
    eventually(() => lines.forEach((line) => expect(log.matching(line)).not.toEqual([])));

  async function visitor(headers: Record<string, string> = {}): Promise<{ agent: HttpAgent; id: string }> {
    const agent = app.agent();
    const { id } = (await agent.post('/set', { name: EVIL, value: randomUUID() }, { headers })).json<{ id: string }>();
    return { agent, id };
  }

  it('is quoted when it is in the error of a handler, the reason of a dead letter or the name of a group', async () => {
    await visitor();
    await isLogged(
      /Failing\.group failed to handle session event created-\S+ Error: "evil\\n/,
      /Failing\.broadcast failed to handle session event created-\S+ TypeError: "evil\\n/,
      /EventEmitter listener failed for session event created-\S+ Error: "evil\\n/,
      /is a dead letter now, see SessionEventGroups: "Failing\.group: Error: evil\\n/,
    );
  });

  it('is quoted when it is in the error of a handler of security events', async () => {
    await app.agent().post('/read', { name: 'a' }, { headers: { cookie: `SESSION=${'a'.repeat(43)}` } });
    await isLogged(/Failing\.security failed to handle a security or provider event.* Error: "evil\\n/);
  });

  it('is quoted when it is the name of an attribute that cannot be decoded, and logged once for each name', async () => {
    for (let i = 0; i < 2; i++) {
      const { agent, id } = await visitor();
      await client.hset(`nest:session:sessions:${id}`, `sessionAttr:${EVIL}`, '{broken');
      for (let again = 0; again < 2; again++) {
        expect((await agent.post('/read', { name: EVIL })).json()).toEqual({ read: null });
      }
    }
    expect(log.matching(/Attribute "evil\\n.*" of session \S+ cannot be decoded/)).toHaveLength(1);
  });

  it('is quoted when the resolver of tokens fails with it', async () => {
    await visitor({ 'x-evil': '1' });
    await isLogged(/The SessionIdResolver failed, so a response is sent without its headers Error: "evil\\n/);
  });

  it('is quoted when it comes from another instance, or from another client of Redis', async () => {
    const stream = 'nest:session:events';
    await client.xadd(stream, '*', 'type', EVIL, 'session', EVIL, 'at', '1');
    await client.xadd(stream, '*', 'type', 'deleted', 'session', EVIL, 'at', '1');
    await isLogged(/is of a kind that this version does not know/);
    const other = await App.start({
      redis: { url: server.url, events: { group: `group ${EVIL}` } },
    });
    log.install();
    await isLogged(/Another instance of the group "group evil\\n.*" has other handlers/);
    await other.stop();
    await client.set('nest:session:events:away', EVIL);
    await client.rename(stream, `${stream}:kept`);
    await client.set(stream, EVIL);
    expect((await app.agent().post('/set', { name: EVIL, value: 1 })).status).toBe(503);
    await isLogged(/The session store failed.*: "Redis failed: .*WRONGTYPE/, /Events cannot be read, retrying: \w+: "/);
    await client.rename(`${stream}:kept`, stream);
  });
});
