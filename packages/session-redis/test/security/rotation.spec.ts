import { createHash } from 'node:crypto';
import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, type HttpResponse, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SessionKeys } from '../../src/keys/session-keys.js';
import { LateModule, LateRequests } from '../support/late.routes.js';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

const ROUNDS = 8;

interface SessionView {
  readonly id: string;
  readonly isNew: boolean;
  readonly attributes: Record<string, unknown>;
}

function idOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}

/** Sends one request after the other until `stop`. */
class Poll {
  readonly responses: HttpResponse[] = [];
  readonly #end: Promise<void>;
  #isOver = false;

  constructor(send: () => Promise<HttpResponse>) {
    this.#end = this.#run(send);
  }

  /** Resolves after `count` more responses. */
  async more(count: number): Promise<void> {
    const until = this.responses.length + count;
    await eventually(() => expect(this.responses.length).toBeGreaterThanOrEqual(until));
  }

  stop(): Promise<void> {
    this.#isOver = true;
    return this.#end;
  }

  async #run(send: () => Promise<HttpResponse>): Promise<void> {
    while (!this.#isOver) this.responses.push(await send());
  }
}

describe.each([
  ['express', 'fastify'],
  ['fastify', 'express'],
] as const)('when a session changes its id on %s, then on another instance, on %s,', (adapter, otherAdapter) => {
  const keys = new SessionKeys(adapter);
  let server: RedisServer;
  let client: Redis;
  let here: App;
  let there: App;
  let late: LateRequests;
  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    const redis = {
      url: server.url,
      namespace: adapter,
      notifications: 'off',
      commandTimeout: '1m',
    } as const;
    const common = { imports: [LateModule], redis, handlers: false };
    here = await App.start({ ...common, adapter });
    there = await App.start({ ...common, adapter: otherAdapter });
    late = there.nest.get(LateRequests, { strict: false });
  });
  afterAll(async () => {
    await Promise.all([here.stop(), there.stop()]);
    client.disconnect();
    await server.stop();
  });

  /** The token of a session that was created there. */
  async function begun(): Promise<string> {
    const agent = there.agent();
    await agent.post('/set/before', { value: true });
    return agent.cookie('SESSION')!;
  }

  function browserWith(token: string, app: App): HttpAgent {
    const agent = app.agent();
    agent.setCookie(`SESSION=${token}`);
    return agent;
  }

  /** Holds a request of each kind there, with this token. */
  async function held(kinds: readonly string[], token: string, round: string) {
    const responses = kinds.map((kind) => browserWith(token, there).post(`/late/${kind}/${round}`));
    await late.door(round).awaits(kinds.length);
    return {
      goOn: () => {
        late.door(round).open();
        return Promise.all(responses);
      },
    };
  }

  async function stored(id: string) {
    const { lastAccessedTime, ...session } = await client.hgetall(keys.session(id));
    expect(Number(lastAccessedTime)).toBeGreaterThan(0);
    return {
      session,
      end: await client.pexpiretime(keys.shadow(id)),
      named: await client.keys(keys.index(PRINCIPAL_NAME_INDEX_NAME, '*')),
      events: await client.xlen(keys.events),
      sessions: (await client.keys(keys.shadow('*'))).length,
    };
  }

  it(`each old token is invalid at once, also after several changes, ${ROUNDS} rounds`, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const old = [await begun()];
      const browser = browserWith(old[0]!, here);
      for (const user of ['ann', 'bea']) {
        await browser.post(`/login/${user}`);
        const responses = await Promise.all(old.map((token) => browserWith(token, there).get('/read')));
        for (const response of responses) expect(response.json()).toMatchObject({ isNew: true, attributes: {} });
        old.push(browser.cookie('SESSION')!);
      }
      expect(await client.exists(...old.slice(0, 2).map((token) => keys.shadow(idOf(token))))).toBe(0);
      const now = browserWith(old[2]!, there);
      expect(await client.exists(keys.shadow(idOf(old[2]!)))).toBe(1);
      expect((await now.get('/read')).json()).toMatchObject({ attributes: { user: 'bea', before: true } });
    }
  });

  it('a save in flight reaches the session of the same user under its new id, even after two changes', async () => {
    const browser = browserWith(await begun(), here);
    await browser.post('/login/ann');
    const requests = await held(['attribute', 'update', 'save'], browser.cookie('SESSION')!, 'in-flight');
    await browser.post('/login/ann');
    await browser.post('/login/ann');
    for (const response of await requests.goOn()) expect([response.status, response.setCookies]).toEqual([201, []]);
    const attributes = { before: true, user: 'ann', attribute: 'late', update: 'late', save: 'late' };
    expect((await browser.get('/read')).json()).toMatchObject({ isNew: false, attributes });
  });

  it('a request in flight changes nothing in the session of another user, and gets no cookie', async () => {
    const token = await begun();
    const kinds = ['attribute', 'update', 'save', 'rotation', 'principal', 'login', 'interval', 'absoluteTimeout'];
    const requests = await held(kinds, token, 'held-open');
    const browser = browserWith(token, here);
    const { id } = (await browser.post('/login/ann')).json<SessionView>();
    const before = await stored(id);
    for (const response of await requests.goOn()) expect([response.status, response.setCookies]).toEqual([201, []]);
    expect(await stored(id)).toEqual(before);
  });

  it.each(['logout', 'zero'])('a request in flight that ends the session leaves the cookie: %s', async (kind) => {
    const browser = browserWith(await begun(), here);
    await browser.post('/login/ann');
    const requests = await held([kind], browser.cookie('SESSION')!, `ends-by-${kind}`);
    const { id } = (await browser.post('/login/ann')).json<SessionView>();
    for (const response of await requests.goOn()) expect([response.status, response.setCookies]).toEqual([201, []]);
    expect(await client.exists(keys.shadow(id))).toBe(0);
  });

  it.each(['logout', 'zero'])('a request in flight does not end the session of another user: %s', async (kind) => {
    for (const [from, to] of [
      ['', 'ann'],
      ['ann', 'bea'],
    ] as const) {
      const browser = browserWith(await begun(), here);
      if (from) await browser.post(`/login/${from}`);
      const requests = await held([kind], browser.cookie('SESSION')!, `ends-${kind}-of-${to}`);
      const { id } = (await browser.post(`/login/${to}`)).json<SessionView>();
      for (const response of await requests.goOn()) expect([response.status, response.setCookies]).toEqual([409, []]);
      expect(await client.exists(keys.shadow(id))).toBe(1);
    }
  });

  it('a logout with a token that was just replaced ends what the token has opened', async () => {
    const browser = browserWith(await begun(), here);
    await browser.post('/login/ann');
    const old = browser.cookie('SESSION')!;
    const { id } = (await browser.post('/login/ann')).json<SessionView>();
    for (const app of [there, here]) expect((await browserWith(old, app).post('/logout')).status).toBe(201);
    expect(await client.exists(keys.shadow(id))).toBe(0);
  });

  it('a late request with the old token creates and ends no session, so that the cookie of the login stays', async () => {
    const token = await begun();
    const browser = browserWith(token, here);
    const { id } = (await browser.post('/login/ann')).json<SessionView>();
    const before = await stored(id);
    for (const app of [there, here]) {
      for (const path of ['/set/late', '/login/mallory', '/push/late', '/logout']) {
        const response = await browserWith(token, app).post(path, { value: 'late' });
        expect([path, response.status, response.setCookies]).toEqual([path, 409, []]);
      }
    }
    expect(await stored(id)).toEqual(before);
  });

  it(`an attacker who polls with a planted token never sees the user, ${ROUNDS} rounds`, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const token = await begun();
      const polls = ['/read', '/read', '/set/mine'].map(
        (path) =>
          new Poll(() => {
            const attacker = browserWith(token, there);
            return path === '/read' ? attacker.get(path) : attacker.post(path, { value: 'planted' });
          }),
      );
      const victim = browserWith(token, here);
      let responded: number[] = [];
      try {
        await Promise.all(polls.map((poll) => poll.more(1)));
        expect((await victim.post('/login/ann')).setCookies).toHaveLength(1);
        responded = polls.map(({ responses }) => responses.length);
        await Promise.all(polls.map((poll) => poll.more(2)));
      } finally {
        await Promise.all(polls.map((poll) => poll.stop()));
      }

      for (const [i, { responses }] of polls.slice(0, 2).entries()) {
        const seen = responses.map((response) => response.json<SessionView>());
        expect(seen.filter(({ attributes }) => 'user' in attributes)).toEqual([]);
        // Invalid from some moment on, at the latest from the response to the login, except for requests in flight.
        const dead = seen.findIndex(({ isNew }) => isNew);
        expect(dead).toBeGreaterThan(0);
        expect(dead).toBeLessThanOrEqual(responded[i]! + 1);
        expect(seen.slice(dead).every(({ isNew }) => isNew)).toBe(true);
      }
      expect(polls.flatMap(({ responses }) => responses.flatMap(({ setCookies }) => setCookies))).toEqual([]);
      expect((await victim.get('/read')).json()).toMatchObject({ isNew: false, attributes: { user: 'ann' } });
    }
  });

  it(`an attacker who logs in with a planted token at the same moment shares no session, ${ROUNDS} rounds`, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const token = await begun();
      const users = { ann: browserWith(token, here), mallory: browserWith(token, there) };
      const logins = await Promise.all(Object.entries(users).map(([user, each]) => each.post(`/login/${user}`)));
      expect(logins.flatMap(({ setCookies }) => setCookies)).toHaveLength(1);
      const seen = await Promise.all(
        Object.entries(users).map(async ([user, browser]) => {
          const { isNew, attributes } = (await browser.get('/read')).json<SessionView>();
          expect(attributes['user']).toBe(isNew ? undefined : user);
          return isNew;
        }),
      );
      expect(seen.filter((isNew) => isNew)).toHaveLength(1);
    }
  });
});
