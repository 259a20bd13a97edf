import type { Server } from 'node:http';
import { LeakGuard, type TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent } from '@nest-session/testing';
import type { Redis } from 'ioredis';
import { REDIS_CONNECTIONS, type RedisConnections } from '../../../redis-events/src/connection/redis-connections.js';
import type { App } from '../support/app.fixture.js';
import { excess, type Usage, usageOf } from '../support/usage.js';
import { EndlessSources } from '../support/endless.sources.js';
import { VISIT_ATTRIBUTES, Visits } from '../support/visit.routes.js';
import { VisitedRedis } from '../support/visited.redis.js';
import { VisitedSessions } from '../support/visited-sessions.js';
import { Visitor } from '../support/visitor.js';

LeakGuard.install();

const ABORTS = 500;
const AT_ONCE = 50;
const BATCHES = ABORTS / AT_ONCE;

const ENDLESS = ['file', 'generator', 'sse', 'pipeline', 'pipe', 'writes'];
const KINDS = ['returned', 'sent', 'observable', ...ENDLESS];
// Nest sends the headers of server-sent events before their handler is done.
const WAITING = KINDS.filter((kind) => kind !== 'sse');
// Nest drops these when the client disconnects before their headers, so nothing is saved.
const DROPPED = ['observable', 'generator', 'sse'];

const LOAD = 'HGETALL';
const [SAVE] = VISIT_ATTRIBUTES;
const REFUSED = '-OOM';

const SOON = { interval: 5 };

let redis: VisitedRedis;
let proxy: TcpProxy;
let client: Redis;
beforeAll(async () => {
  redis = await VisitedRedis.start();
  ({ proxy, client } = redis);
});
afterAll(() => redis.stop());

describe.each(['express', 'fastify'] as const)(`${ABORTS} clients that disconnect, on %s,`, (adapter) => {
  let app: App;
  let visits: Visits;
  let sources: EndlessSources;
  let sessions: VisitedSessions;
  let regulars: HttpAgent[];
  let idle: Usage;
  const wire = { request: '', reply: '' };
  const untap: (() => void)[] = [];
  beforeAll(async () => {
    app = await redis.startApp(adapter);
    visits = app.nest.get(Visits, { strict: false });
    sources = app.nest.get(EndlessSources, { strict: false });
    sessions = new VisitedSessions(client, adapter);
    for (const direction of ['request', 'reply'] as const) {
      untap.push(proxy.onData(direction, (data) => (wire[direction] += data.toString('latin1'))));
    }
    regulars = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => regular(`regular-${i}`)));
    // The first request of each kind creates what is created once, before the counts begin.
    await leaveDuringResponse(KINDS.map((kind) => new Visitor(app.agent(), kind, `first-${kind}`)));
    await haveStopped();
    idle = usage();
  });
  afterAll(async () => {
    for (const end of untap) end();
    await app.stop();
  });

  async function regular(mark: string): Promise<HttpAgent> {
    const agent = app.agent();
    expect((await agent.get(`/returned/${mark}`)).status).toBe(200);
    return agent;
  }

  /** The visitors that leave at once. Half of them have a session, the others get one. */
  function visitors(phase: string, kinds: readonly string[], count = AT_ONCE): Visitor[] {
    return Array.from({ length: count }, (_, i) => {
      const agent = i % 2 === 0 ? regulars[i]! : app.agent();
      return new Visitor(agent, kinds[i % kinds.length]!, `${phase}-${i}`);
    });
  }

  async function leave(all: readonly Visitor[]): Promise<void> {
    await Promise.all(all.map((visitor) => visitor.leave()));
    await haveLeft();
  }

  async function leaveDuringResponse(all: readonly Visitor[]): Promise<void> {
    await Promise.all(all.map((visitor) => visitor.leaveDuringResponse()));
    await haveLeft();
  }

  /** Resolves when the application has noticed that the clients are gone. */
  async function haveLeft(): Promise<void> {
    const http = app.nest.getHttpServer() as Server;
    const connections = () =>
      new Promise((resolve, reject) => http.getConnections((error, count) => (error ? reject(error) : resolve(count))));
    await eventually(async () => expect(await connections()).toBe(0), SOON);
  }

  async function areSaved(visitors: readonly Visitor[]): Promise<void> {
    const marks = visitors.map(({ mark }) => mark);
    await eventually(async () => expect(await sessions.missing(marks)).toEqual([]), SOON);
  }

  async function areNotSaved(visitors: readonly Visitor[]): Promise<void> {
    const marks = visitors.map(({ mark }) => mark);
    expect(await sessions.missing(marks)).toEqual(marks);
  }

  async function haveStopped(): Promise<void> {
    await eventually(() => expect([...sources.running]).toEqual([]), SOON);
    await eventually(() => sessions.areWhole());
  }

  function usage(): Usage {
    const connections = app.nest.get<RedisConnections>(REDIS_CONNECTIONS, { strict: false });
    const clients = Object.entries(connections).map(([name, its]) => [name, 'all' in its ? [...its.all][0] : its]);
    const server = app.nest.getHttpServer() as Server;
    return usageOf({ process, server, ...(Object.fromEntries(clients) as Record<string, Redis>) });
  }

  async function nothingIsLeft(): Promise<void> {
    await haveStopped();
    await eventually(async () => expect(await sources.garbage.left()).toEqual({}));
    await eventually(() => expect(excess(usage(), idle)).toEqual({}));
    const agent = await regular('afterwards');
    expect((await agent.get('/read')).json()).toMatchObject({ attributes: { [SAVE]: 'afterwards' } });
    await eventually(() => sessions.areWhole());
  }

  it('leave nothing behind when they disconnect during the load', async () => {
    for (let batch = 0; batch < BATCHES; batch++) {
      wire.request = '';
      proxy.hold('reply', LOAD);
      const all = regulars.map((agent, i) => new Visitor(agent, KINDS[i % KINDS.length]!, `load-${batch}-${i}`));
      await eventually(() => expect(timesOf(LOAD, wire.request)).toBe(AT_ONCE), SOON);
      await leave(all);
      proxy.release();
      await haveStopped();
      await areNotSaved(all);
    }
    await nothingIsLeft();
  });

  it('leave nothing behind when they disconnect while the handler runs', async () => {
    for (let batch = 0; batch < BATCHES; batch++) {
      visits.closeDoor();
      const all = visitors(`handler-${batch}`, WAITING);
      await eventually(() => expect(visits.waiting).toBe(AT_ONCE), SOON);
      await leave(all);
      visits.openDoor();
      await areSaved(all.filter(({ kind }) => !DROPPED.includes(kind)));
      await haveStopped();
    }
    await nothingIsLeft();
  });

  describe.each(['replied', 'executed', 'refused'] as const)('during a save that is then %s', (outcome) => {
    const SSE = 10;
    const batches = { replied: 4, executed: 3, refused: 3 }[outcome];

    it('leave nothing behind', async () => {
      for (let batch = 0; batch < batches; batch++) {
        visits.closeDoor();
        const all = visitors(`${outcome}-${batch}`, WAITING, AT_ONCE - SSE);
        await eventually(() => expect(visits.waiting).toBe(all.length), SOON);
        wire.request = '';
        proxy.hold(outcome === 'replied' ? 'reply' : 'request', SAVE);
        visits.openDoor();
        for (let i = 0; i < SSE; i++) all.push(new Visitor(app.agent(), 'sse', `${outcome}-${batch}-sse-${i}`));
        await eventually(
          () => expect(all.filter(({ mark }) => !wire.request.includes(JSON.stringify(mark)))).toEqual([]),
          SOON,
        );
        if (outcome === 'replied') await areSaved(all);
        await leave(all);
        // For files the interceptor waits for the save; all others wait with their first bytes written.
        const files = all.filter(({ kind }) => kind === 'file').map(({ mark }) => mark);
        await eventually(() => expect(files).toEqual(expect.arrayContaining([...sources.running])), SOON);
        if (outcome === 'refused') await refuse(all.length, () => proxy.release());
        else proxy.release();
        await (outcome === 'refused' ? areNotSaved(all) : areSaved(all));
        await haveStopped();
      }
      await nothingIsLeft();
    });

    async function refuse(saves: number, release: () => void): Promise<void> {
      wire.reply = '';
      await client.config('SET', 'maxmemory', '1');
      release();
      await eventually(() => expect(timesOf(REFUSED, wire.reply)).toBe(saves), SOON);
      await client.config('SET', 'maxmemory', '0');
    }
  });

  it('leave nothing behind when they disconnect during the response', async () => {
    for (let batch = 0; batch < BATCHES; batch++) {
      const all = visitors(`response-${batch}`, ENDLESS);
      await leaveDuringResponse(all);
      await areSaved(all);
      await haveStopped();
    }
    await nothingIsLeft();
  });
});

function timesOf(word: string, text: string): number {
  return text.split(word).length - 1;
}
