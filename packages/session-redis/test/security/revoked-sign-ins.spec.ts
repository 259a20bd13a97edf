import { randomBytes, scrypt, scryptSync, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { Body, Controller, Get, Inject, Post, UnauthorizedException } from '@nestjs/common';
import { PRINCIPAL_NAME_INDEX_NAME, Session, Sessions } from '@nest-session/core';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { App } from '../support/app.fixture.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

const AT_ONCE = 8;
const TEN_MINUTES = 600_000;

const hashOf = promisify(scrypt) as (password: string, salt: Buffer, length: number) => Promise<Buffer>;
const salt = randomBytes(16);
let hash: Buffer;
/** Where a check waits that has read the hash, and how many do. */
let check: Gate | undefined;
let waiting = 0;

@Controller('account')
class AccountController {
  constructor(@Inject(Sessions) private readonly sessions: Sessions) {}

  /** The hash is read first, as out of a database. */
  @Post('sign-in')
  async signIn(@Session() session: Session, @Body('password') password: string) {
    const expected = hash;
    if (check) {
      waiting++;
      await check.pass();
    }
    if (!timingSafeEqual(expected, await hashOf(password, salt, 32))) throw new UnauthorizedException();
    session.signIn('ann');
  }

  @Post('password')
  async change(@Session() session: Session, @Body('password') password: string) {
    hash = await hashOf(password, salt, 32);
    const ended = await this.sessions.endAll('ann', { except: session });
    session.signIn('ann');
    return { ended };
  }

  @Get()
  show(@Session() session: Session) {
    return { name: session.principalName ?? null };
  }
}

describe.each([
  ['express', 1],
  ['fastify', 4],
] as const)('after a change of the password, on %s with %d partitions,', (adapter, partitions) => {
  let server: RedisServer;
  let client: Redis;
  let apps: readonly [App, App];
  const keys = new SessionPartitions(adapter, partitions).all;
  const markIn = (partition: (typeof keys)[number], name = 'ann') =>
    partition.revocationMark(PRINCIPAL_NAME_INDEX_NAME, hashOfValue(name));

  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    const shared = { url: server.url, namespace: adapter, partitions, notifications: 'off' } as const;
    const redis = { ...shared, commandTimeout: '1m' } as const;
    const session = { maxSessions: { perPrincipal: 2 * AT_ONCE + 1, whenReached: 'refuse' } } as const;
    const start = () => App.start({ adapter, redis, session, controllers: [AccountController], handlers: false });
    apps = [await start(), await start()];
  });
  afterAll(async () => {
    await Promise.all(apps.map((app) => app.stop()));
    client.disconnect();
    await server.stop();
  });
  beforeEach(async () => {
    hash = scryptSync('old', salt, 32);
    await client.flushall();
  });

  const signIn = (agent: HttpAgent, password: string) => agent.post('/account/sign-in', { password });
  const nameOf = async (agent: HttpAgent) => (await agent.get('/account')).json<{ name: string | null }>().name;
  const agents = () => Array.from({ length: AT_ONCE }, (_, i) => apps[i % 2]!.agent());

  /** Begins sign-ins, and waits until each of them has read the hash. The function finishes them. */
  async function begin(held: readonly HttpAgent[]): Promise<() => Promise<number[]>> {
    const gate = new Gate();
    [check, waiting] = [gate, 0];
    const responses = held.map((agent) => signIn(agent, 'old'));
    await eventually(() => expect(waiting).toBe(held.length));
    check = undefined;
    return async () => {
      gate.open();
      return (await Promise.all(responses)).map(({ status }) => status);
    };
  }

  it('nobody is signed in by the old one, whatever was under way on any instance', async () => {
    const [owner, before] = [apps[0].agent(), agents()];
    expect((await signIn(owner, 'old')).status).toBe(201);
    const visitors = agents();
    await Promise.all(visitors.map((agent) => agent.post('/set/cart', { value: 1 })));
    const held = [...agents(), ...visitors];
    const finish = await begin(held);
    // And some that are anywhere between the check and the save.
    const running = before.map((agent) => signIn(agent, 'old'));
    const change = await owner.post('/account/password', { password: 'new' });
    expect(change.status).toBe(201);
    expect(new Set(await finish())).toEqual(new Set([409]));
    for (const { status } of await Promise.all(running)) expect([201, 401, 409]).toContain(status);
    expect(await Promise.all([...held, ...before].map(nameOf))).toEqual([...held, ...before].map(() => null));
    expect(await nameOf(owner)).toBe('ann');
  });

  it('who gives the new one is signed in at once, and takes the place of nobody who was refused', async () => {
    const owner = apps[0].agent();
    const finish = await begin(agents());
    await owner.post('/account/password', { password: 'new' });
    expect(new Set(await finish())).toEqual(new Set([409]));
    const later = [...agents(), ...agents()];
    const statuses = await Promise.all(later.map(async (agent) => (await signIn(agent, 'new')).status));
    expect(new Set(statuses)).toEqual(new Set([201]));
    expect(await apps[1].nest.get(Sessions, { strict: false }).count('ann')).toBe(2 * AT_ONCE + 1);
  });

  it('each partition knows that for ten minutes, or for as long as a mark is there already', async () => {
    const sessions = apps[0].nest.get(Sessions, { strict: false });
    await client.set(markIn(keys[0]!, 'bob'), '', 'PX', 2 * TEN_MINUTES);
    await sessions.endAll('ann');
    await sessions.endAll('bob');
    for (const partition of keys) {
      const mark = markIn(partition);
      const [seconds, microseconds] = await client.time();
      const age = Number(seconds) * 1000 + Number(microseconds) / 1000 - Number(await client.get(mark));
      expect(age).toBeGreaterThanOrEqual(0);
      expect(age).toBeLessThan(TEN_MINUTES / 2);
      const left = await client.pttl(mark);
      expect(left).toBeGreaterThan(TEN_MINUTES / 2);
      expect(left).toBeLessThanOrEqual(TEN_MINUTES);
    }
    expect(await client.pttl(markIn(keys[0]!, 'bob'))).toBeGreaterThan(TEN_MINUTES);
    expect(await client.get(markIn(keys[0]!, 'bob'))).toMatch(/^\d{13}$/);
  });

  it.each([
    ['of a former version', (mark: string) => client.set(mark, '')],
    ['of a time when the clock was ahead', (mark: string) => client.set(mark, Date.now() + 1e9)],
    ['of another type', (mark: string) => client.rpush(mark, 'x')],
  ])('a mark %s refuses nobody', async (_, plant) => {
    for (const partition of keys) await plant(markIn(partition));
    const agent = apps[0].agent();
    await agent.post('/set/cart', { value: 1 });
    expect((await signIn(agent, 'old')).status).toBe(201);
    expect((await signIn(apps[1].agent(), 'old')).status).toBe(201);
  });
});
