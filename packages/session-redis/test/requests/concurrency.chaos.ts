import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

const ROUNDS = 200;

let server: RedisServer;
let client: Redis;
let app: App;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
  app = await App.start({ redis: { url: server.url } });
});
afterAll(async () => {
  await app.stop();
  client.disconnect();
  await server.stop();
});

describe(`two concurrent requests, ${ROUNDS} rounds,`, () => {
  it('keep the attributes that each has set', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const agent = app.agent();
      await agent.post('/set/first', { value: round });
      const left = app.slow(agent, `left${round}`);
      const right = app.slow(agent, `right${round}`);
      await Promise.all([left.gate.reached(), right.gate.reached()]);
      left.gate.open();
      right.gate.open();
      expect((await left.response).status).toBe(201);
      expect((await right.response).status).toBe(201);
      const { attributes } = (await agent.get('/read')).json() as { attributes: object };
      expect(attributes).toEqual({ first: round, [`left${round}`]: 'late', [`right${round}`]: 'late' });
    }
  });

  it('keep the items that each adds to one attribute with updateAttribute', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const agent = app.agent();
      await agent.post('/set/list', { value: [] });
      await Promise.all(['a', 'b', 'c'].map((value) => agent.post(`/push/${value}`)));
      const { attributes } = (await agent.get('/read')).json() as { attributes: { list: string[] } };
      expect([...attributes.list].sort()).toEqual(['a', 'b', 'c']);
    }
  });

  it('are both counted, also when they start from the same number', async () => {
    const agent = app.agent();
    await agent.post('/set/count', { value: 0 });
    for (let round = 0; round < ROUNDS; round++) await Promise.all([agent.post('/count'), agent.post('/count')]);
    expect((await agent.get('/read')).json()).toMatchObject({ attributes: { count: 2 * ROUNDS } });
  });

  it('do not bring back a session that one of them has ended', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const agent = app.agent();
      const { id } = (await agent.post('/set/first', { value: round })).json() as { id: string };
      const token = agent.cookie('SESSION')!;
      const late = app.slow(agent, `late${round}`);
      await late.gate.reached();
      expect((await agent.post('/logout')).status).toBe(201);
      late.gate.open();
      const response = await late.response;
      expect(response.status).toBe(201);
      expect(response.setCookies).toEqual([]);

      expect(await client.exists(`nest:session:sessions:expires:${id}`)).toBe(0);
      const left = (await client.keys(`nest:session:sessions:*${id}*`)).sort();
      expect(left).toEqual([`nest:session:sessions:${id}`]);
      expect(await client.hget(left[0]!, 'ended')).toBe('deleted');
      expect(await client.pttl(left[0]!)).toBeGreaterThan(0);
      const replayed = await app.agent().get('/read', { headers: { cookie: `SESSION=${token}` } });
      expect(replayed.json()).toMatchObject({ isNew: true, attributes: {} });
    }
  });

  it('keep the attributes of a late one across a second login, without opening the session to the old cookie', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const agent = app.agent();
      await agent.post('/set/first', { value: round });
      await agent.post('/login/ann');
      const planted = agent.cookie('SESSION')!;
      const late = app.slow(agent, `across${round}`);
      await late.gate.reached();
      await agent.post('/login/ann');
      late.gate.open();
      expect((await late.response).setCookies).toEqual([]);
      const { attributes } = (await agent.get('/read')).json() as { attributes: object };
      expect(attributes).toMatchObject({ first: round, user: 'ann', [`across${round}`]: 'late' });
      const attacker = await app.agent().get('/read', { headers: { cookie: `SESSION=${planted}` } });
      expect(attacker.json()).toMatchObject({ isNew: true, attributes: {} });
    }
  });
});
