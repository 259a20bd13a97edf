import { EventEmitterModule } from '@nestjs/event-emitter';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { LineRecorder } from '../support/line.recorder.js';
import { FailingHandlers, TooLateModule } from '../support/logged.failures.js';

LeakGuard.install();

const SECRET = 'the-value-of-an-attribute';
const EVENTS = 'nest:session:events';
const BUCKETS = 'nest:session:expirations';
const SHARED = [EVENTS, BUCKETS];

/** The id is the token: a line with the id reveals the session. */
describe('the log contains no token and no value of an attribute', () => {
  const log = new LineRecorder();
  const tokens = new Set<string>();
  let server: RedisServer;
  let client: Redis;
  let app: App;
  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    app = await App.start({
      session: { sessionIds: 'plain', touchInterval: 0 },
      redis: { url: server.url, cleanup: { cron: '* * * * * *' }, events: { attempts: 2 } },
      imports: [EventEmitterModule.forRoot(), TooLateModule],
      providers: [FailingHandlers],
    });
    log.install();
  });
  afterEach(() => {
    for (const secret of [SECRET, ...tokens]) expect(log.lines.join('\n')).not.toContain(secret);
  });
  afterAll(async () => {
    await app.stop();
    client.disconnect();
    await server.stop();
  });

  async function visitor(): Promise<{ agent: HttpAgent; id: string }> {
    const agent = app.agent();
    const { id } = (await agent.post('/set/cart', { value: SECRET })).json<{ id: string }>();
    tokens.add(id);
    return { agent, id };
  }

  const isLogged = (...lines: RegExp[]) =>
    eventually(() => lines.forEach((line) => expect(log.matching(line)).not.toEqual([])));

  it('when handlers fail', async () => {
    const { agent } = await visitor();
    await agent.post('/logout');
    await isLogged(
      /FailingHandlers\.fail failed to handle session event created-sha256/,
      /FailingHandlers\.failToHear failed to handle session event created-sha256/,
      /EventEmitter listener failed for session event deleted-sha256/,
      /failed in attempt 1 of 2/,
      /is a dead letter now/,
    );
  });

  it('when a change comes too late', async () => {
    const { agent } = await visitor();
    await agent.post('/too-late', { value: SECRET });
    await isLogged(/Changes of session sha256:\S+ are lost/);
  });

  it('when an attribute cannot be decoded', async () => {
    const { agent, id } = await visitor();
    await client.hset(`nest:session:sessions:${id}`, 'sessionAttr:cart', `{${SECRET}`);
    await agent.get('/read');
    await isLogged(/"cart" .*cannot be decoded/);
  });

  it('when Redis is out of memory', async () => {
    const { agent } = await visitor();
    await client.config('SET', 'maxmemory', '1');
    expect((await agent.post('/set/cart', { value: `${SECRET} again` })).status).toBe(503);
    await client.config('SET', 'maxmemory', '0');
    await isLogged(/The session store failed.*OOM.* Redis is full: .* Raise its maxmemory/);
    await eventually(async () => {
      await agent.post('/set/cart', { value: SECRET });
      expect(log.matching(/The session store works again/)).not.toEqual([]);
    });
  });

  it('when stray keys are in place of all keys', async () => {
    const { agent, id } = await visitor();
    const expiring = await visitor();
    // A script looks only at keys that it writes: without its member, a session joins a bucket again.
    await client.del(`${BUCKETS}:${await client.hget(`nest:session:sessions:${id}`, 'bucket')}`);
    for (const key of SHARED) {
      await client.rename(key, `away:${key}`);
      await client.set(key, 'foreign');
    }
    expect((await agent.get('/read')).status).toBe(200);
    expect((await agent.post('/set/cart', { value: `${SECRET} again` })).status).toBe(503);
    expect((await agent.post('/login/ann')).status).toBe(503);
    await client.set(`nest:session:sessions:expires:${expiring.id}`, '', 'PX', 1);
    await isLogged(
      /The idle timeout of session sha256:\S+ was not renewed/,
      /Events cannot be read/,
      /The cleanup of sessions failed/,
      /Expired sessions could not be claimed/,
    );
    for (const key of SHARED) await client.rename(`away:${key}`, key);
    expect(await client.exists(`nest:session:sessions:${id}`)).toBe(1);
  });
});
