import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { LivedClock } from '../support/lived.clock.js';
import { print } from '../support/figures.js';

LeakGuard.install();

const COMMAND_TIMEOUT = 1000;
const CLIENTS = 50;
/** How many requests of each client get a response while Redis is frozen: as many command timeouts in a row. */
const ROUNDS = 10;

const clock = new LivedClock();
beforeAll(() => clock.start());
afterAll(() => clock.stop());

type Phase = 'before' | 'frozen' | 'thawing' | 'after';

describe.each(['buckets', 'sorted-set'] as const)('with the %s', (expirations) => {
  let server: RedisServer;
  let client: Redis;
  let app: App;
  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    const redis = { url: server.url, commandTimeout: `${COMMAND_TIMEOUT}ms`, expirations } as const;
    app = await App.start({ redis, handlers: false });
  });
  afterAll(async () => {
    await app.stop();
    client.disconnect();
    await server.stop();
  });

  it('a frozen Redis holds no request much longer than the command timeout, and the first one afterwards succeeds', async () => {
    const responses: {
      readonly status: number;
      readonly took: number;
      readonly begun: Phase;
      readonly ended: Phase;
    }[] = [];
    let phase: Phase = 'before';
    let isOver = false;
    const load = async (agent: HttpAgent) => {
      while (!isOver) {
        const [begin, begun] = [clock.now, phase];
        const { status } = await agent.post('/set/value', { value: responses.length });
        responses.push({ status, took: clock.now - begin, begun, ended: phase });
      }
    };
    const within = (of: Phase) => responses.filter(({ begun, ended }) => begun === of && ended === of);
    const responded = (of: Phase, count: number) =>
      eventually(() => expect(within(of).length).toBeGreaterThanOrEqual(count), { timeout: 120_000 });

    const agents = Array.from({ length: CLIENTS }, () => app.agent());
    for (const agent of agents) expect((await agent.post('/set/value', { value: 1 })).status).toBe(201);
    const loads = Promise.all(agents.map(load));
    await responded('before', 4 * CLIENTS);
    phase = 'frozen';
    server.freeze();
    const begin = clock.now;
    await responded('frozen', ROUNDS * CLIENTS);
    const frozen = clock.now - begin;
    phase = 'thawing';
    server.thaw();
    // By then it replies again.
    await client.ping();
    phase = 'after';
    const first = await app.agent().post('/set/value', { value: 'first' });
    expect(first.status).toBe(201);
    await responded('after', 2 * CLIENTS);
    isOver = true;
    await loads;

    // Each client has one request in flight when Redis freezes and when it continues.
    const atFreeze = responses.filter(({ begun, ended }) => begun === 'before' && ended !== 'before');
    const atThaw = responses.filter(({ begun, ended }) => begun === 'frozen' && ended !== 'frozen');
    expect([atFreeze.length, atThaw.length]).toEqual([CLIENTS, CLIENTS]);
    const [usual, meanwhile] = [longest(within('before')), within('frozen')];
    print(
      `Redis frozen for ${Math.round(frozen)} ms, command timeout ${COMMAND_TIMEOUT} ms: ${meanwhile.length} requests ` +
        `of ${CLIENTS} clients got a response meanwhile, after ${longest(meanwhile)} ms at the latest; in flight at the ` +
        `freeze: ${longest(atFreeze)} ms, at the thaw: ${longest(atThaw)} ms; before: ${usual} ms`,
    );
    expect(statuses(meanwhile)).toEqual([503]);
    // Redis may have replied before the freeze, and replies to the waiting commands after it.
    expect([201, 503]).toEqual(expect.arrayContaining(statuses([...atFreeze, ...atThaw])));
    expect(statuses(within('after'))).toEqual([201]);
    // One command timeout to load, one to save, and the usual time of a request on this machine.
    expect(longest(responses)).toBeLessThan(2 * COMMAND_TIMEOUT + LivedClock.LONGEST_STEP + usual);
  });
});

function longest(responses: readonly { readonly took: number }[]): number {
  return Math.round(Math.max(...responses.map(({ took }) => took)));
}

function statuses(responses: readonly { readonly status: number }[]): number[] {
  return [...new Set(responses.map(({ status }) => status))];
}
