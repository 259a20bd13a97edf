import type { Server } from 'node:http';
import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, type HttpResponse, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SessionKeys } from '../../src/keys/session-keys.js';
import { App } from '../support/app.fixture.js';
import { LATE_KINDS, LateModule, LateRequests } from '../support/late.routes.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

const ROUNDS = 500;
const LOGOUT_ROUNDS = 100;
const AT_ONCE = 25;
// For thousands of requests on a loaded machine.
const PATIENCE = 300_000;

interface SessionView {
  id: string;
  isNew: boolean;
  attributes: Record<string, unknown>;
}

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

describe.each(['express', 'fastify'] as const)(
  'requests in flight during the login of their session, on %s,',
  (adapter) => {
    let app: App;
    let agent: HttpAgent;
    let late: LateRequests;
    const keys = new SessionKeys(adapter);
    beforeAll(async () => {
      // Without notifications there is no canary among the shadow keys.
      const redis = { url: server.url, namespace: adapter, notifications: 'off', commandTimeout: '1m' } as const;
      app = await App.start({ adapter, imports: [LateModule], redis, handlers: false });
      agent = new HttpAgent(app.url, { keepAlive: true });
      // So that the server does not close a connection while the next request is in flight.
      (app.nest.getHttpServer() as Server).keepAliveTimeout = 0;
      late = app.nest.get(LateRequests, { strict: false });
    });
    afterAll(async () => {
      agent.close();
      await app.stop();
    });

    function post(path: string, cookie: string, value?: string): Promise<HttpResponse> {
      return agent.post(path, { value }, { headers: { cookie } });
    }

    async function read(cookie: string): Promise<SessionView> {
      return (await agent.get('/read', { headers: { cookie } })).json();
    }

    /**
     * Holds a request of each kind, logs in, and releases them after the response to the login. `isUser`: of a user who
     * has logged in before.
     */
    async function race(round: string, kinds: readonly string[], isUser = false) {
      const visitor = cookieOf(await post('/set/before', '', round));
      const old = isUser ? cookieOf(await post(`/login/${round}`, visitor)) : visitor;
      const requests = kinds.map((kind) => post(`/late/${kind}/${round}`, old));
      await late.door(round).awaits(kinds.length);
      const login = await post(`/login/${round}`, old);
      late.door(round).open();
      return { old, cookie: cookieOf(login), id: login.json<SessionView>().id, responses: await Promise.all(requests) };
    }

    async function eachOf(rounds: number, check: (round: string) => Promise<void>): Promise<void> {
      for (let first = 0; first < rounds; first += AT_ONCE) {
        await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => check(`${first + i}`)));
      }
    }

    async function eventsOf(ids: ReadonlySet<string>): Promise<Record<string, number>> {
      const counts: Record<string, number> = {};
      for (const [, fields] of await client.xrange(keys.events, '-', '+')) {
        const { type, session } = Object.fromEntries(fields.map((field, i) => [field, fields[i + 1]!]));
        if (ids.has(session!)) counts[type!] = (counts[type!] ?? 0) + 1;
      }
      return counts;
    }

    it(
      `set no cookie, and neither change nor end the session, ${ROUNDS} rounds`,
      async () => {
        const ends = ['logout', 'zero'];
        const kinds = LATE_KINDS;
        const ids = new Set<string>();
        await eachOf(ROUNDS, async (round) => {
          const { old, cookie, id, responses } = await race(round, kinds);
          ids.add(id);
          const expected = kinds.map((kind) => [ends.includes(kind) ? 409 : 201, []]);
          expect(responses.map(({ status, setCookies }) => [status, setCookies])).toEqual(expected);
          // A request that arrives only after the login gets no session, and is told so.
          const stranger = await post('/set/stranger', old, round);
          expect([stranger.status, stranger.setCookies]).toEqual([409, []]);
          expect(await read(old)).toMatchObject({ isNew: true, attributes: {} });

          expect(await read(cookie)).toEqual({
            id,
            isNew: false,
            attributes: { before: round, user: round, [PRINCIPAL_ATTRIBUTE]: round },
          });
          expect(await client.zrange(keys.index(PRINCIPAL_NAME_INDEX_NAME, hashOfValue(round)), '0', '-1')).toEqual([
            id,
          ]);
          expect(await client.ttl(keys.shadow(id))).toBeLessThanOrEqual(30 * 60);
        });
        expect(await client.exists(keys.index(PRINCIPAL_NAME_INDEX_NAME, hashOfValue('mallory')))).toBe(0);
        expect(await client.keys(keys.shadow('*'))).toHaveLength(ROUNDS);
        expect(await eventsOf(ids)).toEqual({ 'id-changed': ROUNDS });
      },
      PATIENCE,
    );

    it(
      `end the session of the same user when they log out, in spite of its new id, ${LOGOUT_ROUNDS} rounds`,
      async () => {
        const kinds = ['logout', 'attribute', 'login'];
        const ids = new Set<string>();
        await eachOf(LOGOUT_ROUNDS, async (round) => {
          const { cookie, id, responses } = await race(`logout-${round}`, kinds, true);
          ids.add(id);
          expect(responses.map(({ status }) => status)).toEqual([201, 201, 201]);
          expect(responses.flatMap(({ setCookies }) => setCookies)).toEqual([]);
          expect(await read(cookie)).toMatchObject({ isNew: true, attributes: {} });
          expect(await client.exists(keys.shadow(id))).toBe(0);
        });
        expect(await eventsOf(ids)).toEqual({ 'id-changed': LOGOUT_ROUNDS, deleted: LOGOUT_ROUNDS });
      },
      PATIENCE,
    );
  },
);

/** The cookie that a response sets, as the next request sends it. */
function cookieOf({ setCookies }: HttpResponse): string {
  expect(setCookies).toHaveLength(1);
  return setCookies[0]!.split(';')[0]!;
}
