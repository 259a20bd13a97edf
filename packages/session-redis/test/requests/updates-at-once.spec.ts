import { setMaxListeners } from 'node:events';
import type { Server } from 'node:http';
import { Controller, Inject, Injectable, Post, Res } from '@nestjs/common';
import { Session } from '@nest-session/core';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App, type AppOptions } from '../support/app.fixture.js';
import { commandStats } from '../support/command.stats.js';

LeakGuard.install();

/** Where the requests of one application wait until all have loaded the session. */
@Injectable()
class Meeting {
  readonly gate = new Gate();
  arrived = 0;
  /** The calls of the functions of updates. */
  calls = 0;
  settled = 0;
}

@Controller()
class MeetingController {
  constructor(@Inject(Meeting) private readonly meeting: Meeting) {}

  @Post('meet')
  meet(@Session() session: Session) {
    return this.#meet(session);
  }

  @Post('respond-and-meet')
  async respond(@Session() session: Session, @Res() reply: { send(body: string): unknown }) {
    reply.send('early');
    await this.#meet(session);
  }

  @Post('clear')
  clear(@Session() session: Session) {
    return session.updateAttribute<string[]>('list', () => []);
  }

  async #meet(session: Session): Promise<number | undefined> {
    const { meeting } = this;
    meeting.arrived++;
    await meeting.gate.pass();
    try {
      return await session.updateAttribute<number>('count', (count = 0) => {
        meeting.calls++;
        return count + 1;
      });
    } finally {
      meeting.settled++;
    }
  }
}

let server: RedisServer;
let client: Redis;
let apps: App[] = [];
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});
afterEach(async () => {
  await Promise.all(apps.map((app) => app.stop()));
  apps = [];
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

/** A session with `count`: 0 on instances of an application that handle no events and so call no scripts in between. */
async function startedBy(instances: number, options: AppOptions = {}): Promise<{ agent: HttpAgent; cookie: string }> {
  const parts = { controllers: [MeetingController], providers: [Meeting], handlers: false, ...options };
  // No key events and no cleanup but in a night of the year, so that no sweep is counted.
  const cleanup = { cron: '0 0 4 1 1 *' };
  const redis = { url: server.url, events: { consume: false }, notifications: 'off', cleanup } as const;
  apps = await Promise.all(Array.from({ length: instances }, () => App.start({ ...parts, redis })));
  const agent = apps[0]!.agent();
  await agent.post('/set/count', { value: 0 });
  return { agent, cookie: `SESSION=${agent.cookie('SESSION')}` };
}

const meetingOf = (app: App) => app.nest.get(Meeting, { strict: false });

/** Sends requests to the instances in turn, and lets them go on when all have loaded the session. */
async function meet(requests: number, cookie: string, signal?: AbortSignal): Promise<{ statuses: number[] }> {
  const responses = Array.from({ length: requests }, (_, i) =>
    apps[i % apps.length]!.agent().post('/meet', undefined, { headers: { cookie }, signal }),
  );
  const statuses = Promise.all(responses.map(async (response) => (await response).status));
  statuses.catch(() => undefined);
  await eventually(() => expect(apps.reduce((sum, app) => sum + meetingOf(app).arrived, 0)).toBe(requests));
  await client.config('RESETSTAT');
  if (signal) return { statuses: [] };
  for (const app of apps) meetingOf(app).gate.open();
  return { statuses: await statuses };
}

/** Resolves when the application has noticed that its clients are gone. */
async function areDisconnected(app: App): Promise<void> {
  const http = app.nest.getHttpServer() as Server;
  const connections = () => new Promise((resolve) => http.getConnections((_, count) => resolve(count)));
  await eventually(async () => expect(await connections()).toBe(0));
}

async function scripts(): Promise<number> {
  const stats = await commandStats(client);
  // ioredis sends the first call of a script on a connection as EVAL.
  return ['eval', 'evalsha'].reduce((sum, name) => sum + (stats.get(name)?.calls ?? 0), 0);
}

describe('requests that update one attribute at once', () => {
  it.each(['express', 'fastify'] as const)('cost at most 3 scripts each on one instance, on %s', async (adapter) => {
    const { agent, cookie } = await startedBy(1, { adapter });
    const { statuses } = await meet(400, cookie);
    expect(statuses).toEqual(Array(400).fill(201));
    expect(await scripts()).toBeLessThanOrEqual(3 * 400);
    expect((await agent.get('/read')).json()).toMatchObject({ attributes: { count: 400 } });
  });

  it('cost at most 10 scripts each on four instances, and none is lost', async () => {
    const { agent, cookie } = await startedBy(4);
    const { statuses } = await meet(200, cookie);
    expect(statuses).toEqual(Array(200).fill(201));
    expect(await scripts()).toBeLessThanOrEqual(10 * 200);
    expect((await agent.get('/read')).json()).toMatchObject({ attributes: { count: 200 } });
  });

  it.each(['express', 'fastify'] as const)('stop when their clients have disconnected, on %s', async (adapter) => {
    const { cookie } = await startedBy(1, { adapter });
    const [app] = apps;
    const meeting = meetingOf(app!);
    const leaving = new AbortController();
    setMaxListeners(0, leaving.signal);
    await meet(200, cookie, leaving.signal);
    leaving.abort();
    await areDisconnected(app!);
    meeting.gate.open();
    await eventually(() => expect(meeting.settled).toBe(200));
    // Only the first one need not wait.
    expect({ calls: meeting.calls, scripts: await scripts() }).toEqual({ calls: 1, scripts: 1 });
  });
});

describe('updates that a handler makes after its response', () => {
  it.each(['express', 'fastify'] as const)('are kept when their clients have disconnected, on %s', async (adapter) => {
    const { agent, cookie } = await startedBy(1, { adapter });
    const meeting = meetingOf(apps[0]!);
    const responses = Array.from({ length: 20 }, () =>
      agent.post('/respond-and-meet', undefined, { headers: { cookie } }),
    );
    for (const response of responses) expect((await response).text).toBe('early');
    await areDisconnected(apps[0]!);
    meeting.gate.open();
    await eventually(() => expect(meeting.settled).toBe(20));
    expect((await agent.get('/read')).json()).toMatchObject({ attributes: { count: 20 } });
  });
});

describe('an update', () => {
  it('does not send the text that it expects to be stored', async () => {
    const { agent } = await startedBy(1);
    await agent.post('/set/list', { value: ['x'.repeat(90_000)] });
    const received = async () => Number(/total_net_input_bytes:(\d+)/.exec(await client.info('stats'))![1]);
    // The script is loaded.
    await agent.post('/count');
    const before = await received();
    expect((await agent.post('/clear')).status).toBe(201);
    expect((await received()) - before).toBeLessThan(10_000);
  });
});
