import { createHmac, randomBytes } from 'node:crypto';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { closeApps, startApp } from '../support/express-session.app.js';
import { request, runIn, StepController, type StepRequest } from '../support/step.controller.js';

LeakGuard.install();

const SECRET = 'a secret';
const VALUE = 'very-private';

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
afterEach(closeApps);

/** The fields of all session hashes. */
async function stored(): Promise<Record<string, string>[]> {
  const keys = await client.keys('nest:session:sessions:*');
  const hashes = await Promise.all(keys.map(async (key) => ((await client.type(key)) === 'hash' ? key : undefined)));
  return Promise.all(hashes.filter((key) => key !== undefined).map((key) => client.hgetall(key)));
}

it('properties of an old session and of a new one are encrypted, also when they change in place', async () => {
  const keys = [{ id: 'a', key: randomBytes(32).toString('base64') }];
  const store = RedisSessionModule.forRoot({ url: server.url, commandTimeout: '1m', encryption: { keys } });
  const app = await startApp({
    controllers: [StepController],
    express: { secret: [SECRET], principal: 'passport' },
    store,
  });
  const browser = app.agent();
  await client.set('sess:old', JSON.stringify({ cookie: {}, cart: [VALUE], passport: { user: 'ann' } }), 'EX', 600);
  const signature = createHmac('sha256', SECRET).update('old').digest('base64').replace(/=+$/, '');
  browser.setCookie(`connect.sid=${encodeURIComponent(`s:old.${signature}`)}; Path=/`);
  await runIn(browser, ({ session }) => void session.cart.push(VALUE));
  await runIn(browser, ({ session }) => (session.note = VALUE));
  await runIn(browser, ({ session }) => session.updateAttribute('n', () => VALUE));
  const read = ({ session: { cart, note, n, passport } }: { session: any }): unknown[] => [
    cart,
    note,
    n,
    passport.user,
  ];
  expect(await runIn(browser, read)).toEqual([[VALUE, VALUE], VALUE, VALUE, 'ann']);
  expect(await stored()).toHaveLength(1);
  expect(JSON.stringify(await stored())).not.toContain(VALUE);
  await runIn(browser, async ({ session }) => {
    await session.regenerate();
  });
  await runIn(browser, ({ session }) => (session.note = `${VALUE}-2`));
  expect(await runIn(browser, ({ session }) => session.note as string)).toBe(`${VALUE}-2`);
  expect(JSON.stringify(await stored())).not.toContain(VALUE);
});

/** A browser whose session has a property that cannot be decrypted. */
async function withDamage() {
  const keys = [{ id: 'a', key: randomBytes(32).toString('base64') }];
  const store = RedisSessionModule.forRoot({ url: server.url, commandTimeout: '1m', encryption: { keys } });
  const { agent } = await startApp({ controllers: [StepController], express: { unset: 'destroy' }, store });
  const browser = agent();
  const id = await runIn(browser, ({ session }) => {
    session.signIn('ann');
    session.damaged = VALUE;
    session.note = VALUE;
    return session.id as string;
  });
  const key = `nest:session:sessions:${id}`;
  const fields = await client.hgetall(key);
  const fieldOf = (name: string) => Object.keys(fields).find((field) => field.endsWith(name))!;
  await client.hset(key, fieldOf('damaged'), fields[fieldOf('note')]!);
  return browser;
}

it.each<[string, (request: StepRequest) => unknown]>([
  ['destroy()', (req) => req.session.destroy()],
  ['regenerate()', (req) => req.session.regenerate()],
  ['req.session = null', (req) => void (req.session = null)],
  ['delete req.session', (req) => void delete (req as { session?: unknown }).session],
])('a property that cannot be decrypted does not keep a user signed in: %s', async (_, signOut) => {
  const browser = await withDamage();
  await expect(runIn(browser.fork(), ({ session }) => session.damaged as string)).rejects.toThrow(
    'cannot be decrypted',
  );
  const kept = browser.fork();
  expect(await request(browser, signOut)).toMatchObject({ status: 200 });
  const seen = await runIn(browser, ({ session }) => [session.principalName ?? null, session.damaged ?? null]);
  expect(seen).toEqual([null, null]);
  expect(await runIn(kept, ({ session }) => session.isNew as boolean)).toBe(true);
});

it('a property that cannot be decrypted can be deleted', async () => {
  const browser = await withDamage();
  await runIn(browser, ({ session }) => delete session.damaged);
  expect(await runIn(browser, ({ session }) => [session.damaged ?? null, session.note])).toEqual([null, VALUE]);
});
