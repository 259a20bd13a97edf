import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, RedisServer, sessionOf, signIn } from '@nest-session/testing';
import { closeApps, PLATFORMS, SocketApp, VisitsGateway } from '../support/socket.app.js';
import { closeClients, connect } from '../support/socket.client.js';

LeakGuard.install();

let redis: RedisServer;
beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());
afterEach(async () => {
  closeClients();
  await closeApps();
});

describe.each(PLATFORMS)('a gateway of %s', (platform) => {
  let app: SocketApp;
  let agent: HttpAgent;
  beforeEach(async () => {
    app = await SocketApp.start({ platform, url: redis.url });
    agent = await signIn(app.nest, { principalName: 'ada', attributes: { visits: 1 } });
  });

  it('has the session in each message, as an HTTP request has just stored it', async () => {
    const client = await connect(platform, agent);
    expect(await client.ask('read')).toEqual({ isInContext: true, user: 'ada', visits: 1 });
    await agent.post('/visits/7');
    expect(await client.ask('read')).toEqual({ isInContext: true, user: 'ada', visits: 7 });
  });

  it('saves what a handler changes before it is acknowledged', async () => {
    const client = await connect(platform, agent);
    expect(await client.ask('visit')).toBe(2);
    expect((await sessionOf(app.nest, agent))!.getAttribute('visits')).toBe(2);
    await expect(client.ask('fail')).rejects.toThrow('Internal server error');
    expect((await sessionOf(app.nest, agent))!.getAttribute('failed')).toBe(true);
  });

  it('has the session in handleConnection(), by SessionContext and by Sessions.load()', async () => {
    await connect(platform, agent);
    await eventually(() => expect(app.nest.get(VisitsGateway).connected).toEqual([['ada', 'ada']]));
  });

  it('serves clients without a session, who cannot start one', async () => {
    const client = await connect(platform, app.agent());
    expect(await client.ask('read')).toEqual({ isInContext: true, user: null, visits: null });
    await expect(client.ask('visit')).rejects.toThrow('Internal server error');
    expect(app.log.lines.join('\n')).toContain('over an open connection, because no cookie can be sent');
  });

  it('closes the sockets of a session that ends', async () => {
    const [one, other] = [await connect(platform, agent), await connect(platform, agent)];
    const stranger = await connect(platform, app.agent());
    await agent.post('/logout');
    const reason = platform === 'ws' ? '4401 session ended' : 'io server disconnect';
    expect(await Promise.all([one.closed, other.closed])).toEqual([reason, reason]);
    expect(stranger.isOpen).toBe(true);
  });

  it('closes the sockets of a session whose id changes', async () => {
    const client = await connect(platform, agent);
    await agent.post('/login/bob');
    expect(await client.closed).toBe(platform === 'ws' ? '4401 session id changed' : 'io server disconnect');
    expect(await (await connect(platform, agent)).ask('read')).toMatchObject({ user: 'bob' });
  });

  it('refuses pages of foreign origins', async () => {
    await expect(connect(platform, agent, { headers: { origin: 'https://evil.example' } })).rejects.toThrow('refused');
    expect((await connect(platform, agent, { headers: { origin: app.origin } })).isOpen).toBe(true);
  });
});

it.each([[['websocket']], [['polling']]])(
  'socket.io closes the sockets of a namespace without a gateway, too: %j',
  async (transports) => {
    const app = await SocketApp.start({ platform: 'socket.io', url: redis.url });
    const server = app.nest.get(VisitsGateway).server as unknown as { of(namespace: string): unknown };
    server.of('/raw');
    const agent = await signIn(app.nest, { principalName: 'ada' });
    const client = await connect('socket.io', agent, { transports, namespace: '/raw' });
    const stranger = await connect('socket.io', app.agent(), { transports, namespace: '/raw' });
    const foreign = { transports, namespace: '/raw', headers: { origin: 'https://evil.example' } };
    await expect(connect('socket.io', agent, foreign)).rejects.toThrow();
    await agent.post('/logout');
    expect(await client.closed).toBe('io server disconnect');
    expect(stranger.isOpen).toBe(true);
  },
);

it.each(PLATFORMS)(
  'in strict mode, a gateway of %s refuses a client with the sessions of two users',
  async (platform) => {
    const app = await SocketApp.start({ platform, url: redis.url, session: { security: 'strict' } });
    const signedIn = async (principalName: string) =>
      signIn(app.nest, { principalName }, { agent: await HttpAgent.for(app.nest, { secure: true }) });
    const [ann, bob] = [await signedIn('ann'), await signedIn('bob')];
    const cookies = [ann, bob].map((each) => String(each.headersFor('/')['cookie']));
    const connectWith = (cookie: string) => connect(platform, app.agent(), { headers: { cookie } });
    const cause = expect.objectContaining({ statusCode: 409, reason: 'two-principals' });
    await expect(connectWith(cookies.join('; '))).rejects.toMatchObject({ cause });
    expect((await connectWith(cookies[0]!)).isOpen).toBe(true);
  },
);
