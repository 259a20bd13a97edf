import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@libsql/client';
import { LeakGuard, Program, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { launchChromium } from '@nest-session/test-infrastructure/browser';
import { eventually, freePort, HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { OAuth2Provider } from '../../packages/session-express/test/support/oauth2.provider.js';
import {
  closeClients,
  connect as connectSocket,
} from '../../packages/session-websockets/test/support/socket.client.js';
import { ask, connect, disposeClients, iterate } from '../../packages/session-redis/test/support/graphql.client.js';
import { anchorOf, codeBlocks, links, namedBlocks, section } from './support/markdown.js';
import { compile, ROOT } from './support/compiler.js';
import { RECIPES, recipeText } from './support/recipes.js';
import { curlStandIn, differences, hasCurl, systemShell } from './support/transcript.js';

LeakGuard.install();

/** The recipes whose first block is a whole program, which listens on PORT and uses the Redis of REDIS_URL. */
const programs: string[] = [];
const TESTS = 'tests';

// Enough time for compilers, test runners and several programs on a busy machine.
const SLOWLY = 300_000;

// `npm run test:examples` has installed the packed packages in a project of its own, and names the packages of that.
const PACKAGES = process.env['RECIPES_PACKAGES'] ?? join(ROOT, 'node_modules');

/** The folder with a folder for each recipe, as projects that have installed the packages. */
let folder: string;

/** The files of a recipe, with what they hold. */
function filesOf(recipe: string): Map<string, string> {
  const text = recipeText(recipe);
  return recipe === TESTS ? namedBlocks(text) : new Map([['main.ts', codeBlocks(text, 'ts')[0]!]]);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'recipes-'));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await symlink(PACKAGES, join(folder, 'node_modules'));
  const projects = new Map<string, string[]>();
  for (const recipe of [...programs, TESTS]) {
    const files = filesOf(recipe);
    await mkdir(join(folder, recipe));
    for (const [name, code] of files) await writeFile(join(folder, recipe, name), code);
    projects.set(
      join(folder, recipe, 'tsconfig.json'),
      [...files.keys()].filter((name) => name.endsWith('.ts')),
    );
  }
  expect(await compile(projects, { types: ['node', 'jest'] })).toBe('');
}, SLOWLY);

afterAll(() => rm(folder, { recursive: true, force: true }));

/** An instance of the program of a recipe. */
class Instance {
  private constructor(
    readonly program: Program,
    readonly origin: string,
  ) {}

  static async start(recipe: string, redis: RedisServer, settings: NodeJS.ProcessEnv = {}): Promise<Instance> {
    const port = await freePort();
    const env = { ...settings, REDIS_URL: redis.url, PORT: `${port}` };
    const program = Program.start([join(folder, recipe, 'main.js')], env);
    const instance = new Instance(program, `http://localhost:${port}`);
    await eventually(() => instance.agent().get('/'), { timeout: 60_000 });
    return instance;
  }

  /** A client without cookies. */
  agent(): HttpAgent {
    return new HttpAgent(this.origin);
  }

  get output(): string {
    return this.program.output;
  }

  async stop(): Promise<void> {
    this.program.child.kill('SIGKILL');
    await this.program.exit;
  }
}

/** The running program of a recipe, for the tests of one block. */
let instance: Instance;

/** A browser with the cookies of all these clients, as one has two of one name after a change of the cookie's path. */
function withCookiesOf(...agents: HttpAgent[]): HttpAgent {
  const cookie = agents.map((agent) => agent.headersFor('/')['cookie']).join('; ');
  return new HttpAgent(instance.origin, { headers: { cookie } });
}

/** Starts the program of a recipe once; its Redis is empty before each test. The environment is asked for before. */
function describeRecipe(recipe: string, tests: () => void = () => undefined, environment?: () => NodeJS.ProcessEnv) {
  programs.push(recipe);
  describe(`the recipe ${recipe}`, () => {
    let redis: RedisServer;
    let client: Redis;
    let started: Instance | undefined;

    beforeAll(async () => {
      redis = await RedisServer.start();
      client = new Redis(redis.url);
      started = instance = await Instance.start(recipe, redis, environment?.());
    }, SLOWLY);
    beforeEach(() => client.flushall());
    afterAll(async () => {
      await started?.stop();
      await client?.quit();
      await redis?.stop();
    });

    const text = recipeText(recipe);
    const transcripts = codeBlocks(text, 'console').join('');

    it('begins with its whole program, after what is to install, and has no other', () => {
      expect(codeBlocks(text, 'ts')).toHaveLength(1);
      expect(/^```(?!sh$)(\w+)$/m.exec(text)?.[1]).toBe('ts');
    });

    // Not every machine with Node.js has curl.
    if (transcripts !== '' && hasCurl()) {
      it('prints what the page shows, with curl', async () => {
        const jar = await mkdtemp(join(tmpdir(), 'recipe-'));
        expect(await differences(transcripts, systemShell(jar), instance.origin)).toEqual([]);
        await rm(jar, { recursive: true });
      });
    }

    if (transcripts !== '') {
      it('prints what the page shows, with a client like curl', async () => {
        const { shell, close } = curlStandIn(instance.origin);
        expect(await differences(transcripts, shell, instance.origin)).toEqual([]);
        close();
      });
    }

    tests();
  });
}

describeRecipe('sign-in-with-roles', () => {
  it('takes the token from before the sign-in away, and signs out', async () => {
    const browser = instance.agent();
    await browser.post('/cart', { item: 'apple' });
    const thief = browser.fork();
    expect((await browser.post('/sign-in', { name: 'ada', password: 'engine' })).status).toBe(201);
    expect((await thief.get('/orders')).status).toBe(401);
    expect((await browser.post('/sign-in', { name: 'bob', password: 'builder' })).status).toBe(409);
    await browser.post('/sign-out');
    expect((await browser.get('/orders')).status).toBe(401);
  });

  it('signs out of every session of the request', async () => {
    const sessions = [instance.agent(), instance.agent()];
    for (const each of sessions) await each.post('/sign-in', { name: 'ada', password: 'engine' });
    const browser = withCookiesOf(...sessions);
    expect((await browser.get('/orders')).status).toBe(200);
    expect((await browser.post('/sign-out')).status).toBe(201);
    for (const each of [browser, ...sessions]) expect((await each.get('/orders')).status).toBe(401);
  });

  it('refuses to sign in with anything but a name and its password', async () => {
    const wrong = [
      { name: 'ada', password: 'builder' },
      { name: 'nobody', password: 'engine' },
      { name: 'ada' },
      { name: ['ada'], password: ['engine'] },
      {},
    ];
    for (const body of wrong) {
      const { status, setCookies } = await instance.agent().post('/sign-in', body);
      expect({ body, status, setCookies }).toEqual({ body, status: 401, setCookies: [] });
    }
  });
});

describeRecipe('my-devices', () => {
  async function signedIn(name: string): Promise<HttpAgent> {
    const agent = instance.agent();
    await agent.post('/sign-in', { name });
    return agent;
  }

  const devices = async (agent: HttpAgent) =>
    (await agent.get('/devices')).json<{ id: string; isThisOne: boolean }[]>();
  const idOf = async (agent: HttpAgent) => (await devices(agent)).find(({ isThisOne }) => isThisOne)!.id;

  it('ends a device of the user, and no device of another user', async () => {
    const [laptop, phone, bobs] = await Promise.all(['ada', 'ada', 'bob'].map(signedIn));
    const [ofLaptop, ofBob] = [await idOf(laptop!), await idOf(bobs!)];
    const statusOf = async (agent: HttpAgent, id: string) => (await agent.request('DELETE', `/devices/${id}`)).status;
    expect(await statusOf(phone!, ofBob)).toBe(404);
    expect(await statusOf(phone!, 'unknown')).toBe(404);
    expect(await statusOf(instance.agent(), ofBob)).toBe(401);
    expect(await devices(bobs!)).toHaveLength(1);
    expect(await statusOf(phone!, ofLaptop)).toBe(204);
    expect((await laptop!.get('/devices')).status).toBe(401);
    expect(await devices(phone!)).toHaveLength(1);
  });

  it('signs out the device in use, and expires its cookie', async () => {
    const phone = await signedIn('ada');
    const { status } = await phone.request('DELETE', `/devices/${await idOf(phone)}`);
    expect([status, phone.cookies]).toEqual([204, {}]);
  });

  it('signs out of every session of the request', async () => {
    const [phone, other, laptop] = await Promise.all(['ada', 'ada', 'ada'].map(signedIn));
    const browser = withCookiesOf(phone!, other!);
    expect((await browser.request('DELETE', `/devices/${await idOf(browser)}`)).status).toBe(204);
    for (const each of [browser, phone!, other!]) expect((await each.get('/devices')).status).toBe(401);
    expect(await devices(laptop!)).toHaveLength(1);
  });
});

describeRecipe('durable-events', () => {
  it('handles what is recorded, once, and prints what the page shows', async () => {
    const mails = () => instance.output.split('\n').filter((line) => /^Mail .*: order 7 over 30 is paid$/.test(line));
    const orders = await Promise.all([7, 8, 9].map((order) => instance.agent().post(`/orders/${order}/pay`)));
    expect(orders.map(({ status }) => status)).toEqual([201, 201, 201]);
    await eventually(() => expect(mails()).toHaveLength(1), { timeout: 30_000 });
    const [line = ''] = codeBlocks(recipeText('durable-events'), 'text');
    expect(
      mails()[0]!
        .replace(/^Mail [-0-9a-f]{36}/, 'Mail ...')
        .replace('order 7', 'order 42'),
    ).toBe(line.trimEnd());
  });
});

describeRecipe('passport', () => {
  it('signs out of every session of the request', async () => {
    const sessions = [instance.agent(), instance.agent()];
    for (const each of sessions) await each.post('/sign-in', { username: 'ada', password: 'engine' });
    const browser = withCookiesOf(...sessions);
    expect((await browser.get('/orders')).status).toBe(200);
    expect((await browser.post('/sign-out')).status).toBe(201);
    for (const each of [browser, ...sessions]) expect((await each.get('/orders')).status).toBe(401);
  });

  it('takes the token from before the sign-in away', async () => {
    const browser = instance.agent();
    await browser.post('/cart', { item: 'apple' });
    const thief = browser.fork();
    expect((await browser.post('/sign-in', { username: 'ada', password: 'engine' })).status).toBe(201);
    expect((await thief.get('/orders')).status).toBe(401);
    expect((await browser.get('/orders')).json()).toMatchObject({ name: 'ada', items: ['apple'] });
  });
});

describe('with a provider of OAuth2,', () => {
  let provider: OAuth2Provider;
  beforeAll(async () => (provider = await OAuth2Provider.start()));
  afterAll(() => provider.stop());

  const atProvider = () => ({
    AUTHORIZE_URL: `${provider.origin}/authorize`,
    TOKEN_URL: `${provider.origin}/token`,
    USER_URL: `${provider.origin}/user`,
  });
  const begin = async (agent: HttpAgent) => (await agent.get('/sign-in')).headers.location!;
  const statusOf = async (agent: HttpAgent, path: string) => (await agent.get(path)).status;

  describeRecipe(
    'oauth2',
    () => {
      it('signs in by a code of the provider, under a new id', async () => {
        const ann = instance.agent();
        const callback = await provider.visit(await begin(ann));
        const thief = ann.fork();
        const { status, headers } = await ann.get(callback);
        expect([status, headers.location]).toEqual([302, '/me']);
        expect((await ann.get('/me')).json()).toEqual({ user: 'github:ann' });
        expect(await statusOf(thief, '/me')).toBe(401);
        expect(await statusOf(ann, callback)).toBe(403);
        await ann.post('/sign-out');
        expect(await statusOf(ann, '/me')).toBe(401);
      });

      it('signs out of every session of the request', async () => {
        const sessions = [instance.agent(), instance.agent()];
        for (const each of sessions) await each.get(await provider.visit(await begin(each)));
        const browser = withCookiesOf(...sessions);
        expect(await statusOf(browser, '/me')).toBe(200);
        expect((await browser.post('/sign-out')).status).toBe(201);
        for (const each of [browser, ...sessions]) expect(await statusOf(each, '/me')).toBe(401);
      });

      it('refuses a code for another browser, one with another verifier, and a user who did not agree', async () => {
        const [ann, eve] = [instance.agent(), instance.agent()];
        const ofEve = await provider.visit(await begin(eve));
        const stateOf = (path: string) => new URL(path, instance.origin).searchParams.get('state')!;
        const ofAnn = await provider.visit(await begin(ann));
        expect(await statusOf(ann, ofEve)).toBe(403);
        expect(await statusOf(ann, ofEve.replace(stateOf(ofEve), stateOf(ofAnn)))).toBe(401);
        expect(await statusOf(eve, `/callback?error=access_denied&state=${stateOf(ofEve)}`)).toBe(401);
        for (const each of [ann, eve]) expect(await statusOf(each, '/me')).toBe(401);
      });
    },
    atProvider,
  );
});

describe('in Chromium,', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  }, SLOWLY);
  afterAll(() => browser?.close());

  let user: BrowserContext;
  let tab: Page;
  beforeEach(async () => {
    user = await browser.newContext();
    tab = await user.newPage();
  });
  afterEach(() => user.close());

  /** Clicks a button, and waits until the page shows the text. */
  async function click(page: Page, button: string, shown: string): Promise<void> {
    await page.click(button);
    await page.locator('output', { hasText: shown }).waitFor();
  }

  describeRecipe('csrf', () => {
    it('accepts the form and the scripts of its page, before and after the sign-in', async () => {
      await tab.goto(instance.origin);
      await click(tab, '#like', '1');
      await click(tab, '#sign-in', 'ann');
      await click(tab, '#like', '2');
      await tab.fill('[name=email]', 'ann@shop.test');
      await tab.click('form button');
      await tab.getByText('{"email":"ann@shop.test"}').waitFor();
    });

    it('refuses the page from before the sign-in', async () => {
      await tab.goto(instance.origin);
      const other = await user.newPage();
      await other.goto(instance.origin);
      await click(other, '#sign-in', 'ann');
      await click(tab, '#like', 'load the page again');
    });
  });

  describe('of another origin,', () => {
    let frontEnd: string;
    beforeAll(async () => {
      frontEnd = `http://app.shop.test:${await freePort()}`;
    });

    describeRecipe(
      'front-end',
      () => {
        it('signs in, stays signed in at the next visit, and signs out, from another host of the site', async () => {
          await tab.goto(frontEnd);
          await click(tab, '#me', 'not-authenticated');
          await click(tab, '#sign-in', 'ann');
          expect((await user.cookies()).filter(({ name }) => name === 'SESSION')).toMatchObject([
            { domain: 'api.shop.test', sameSite: 'Lax', httpOnly: true },
          ]);
          await tab.reload();
          await click(tab, '#me', 'ann');
          const signedOut = tab.waitForResponse((response) => response.url().endsWith('/csrf'));
          await tab.click('#sign-out');
          await signedOut;
          await click(tab, '#me', 'not-authenticated');
        });

        it('neither shows a page of an origin that is not listed anything, nor lets it change anything', async () => {
          await tab.goto(frontEnd);
          await click(tab, '#sign-in', 'ann');
          const other = await user.newPage();
          await other.goto(frontEnd.replace('app.', 'evil.'));
          const api = instance.origin.replace('localhost', 'api.shop.test');
          const read = (init: string) =>
            other.evaluate<string>(`fetch('${api}/me', ${init}).then(() => 'read', () => 'blocked')`);
          expect(await read("{ credentials: 'include' }")).toBe('blocked');
          const refused = other.waitForResponse((response) => response.request().method() === 'POST');
          const form = `<form method=post action=${api}/sign-out><button>Sign out</button></form>`;
          await other.evaluate(`document.body.innerHTML = ${JSON.stringify(form)}; document.forms[0].submit()`);
          expect(await (await refused).json()).toMatchObject({
            reason: 'cross-origin',
            message: expect.stringContaining('`csrf.trustedOrigins`') as string,
          });
          await click(tab, '#me', 'ann');
        });
      },
      () => ({ FRONT_END: frontEnd, API_HOST: 'api.shop.test' }),
    );
  });

  describeRecipe('websocket', () => {
    afterEach(closeClients);

    it('signs out of every session of the request', async () => {
      const sessions = [instance.agent(), instance.agent()];
      for (const each of sessions) await each.post('/sign-in');
      const browser = withCookiesOf(...sessions);
      const path = '/socket.io';
      const sockets = await Promise.all(sessions.map((each) => connectSocket('socket.io', each, { path })));
      expect((await browser.post('/sign-out')).status).toBe(201);
      const late = await connectSocket('socket.io', browser, { path });
      await expect(late.ask('add', 'apple')).rejects.toThrow('Sign in first');
      for (const socket of sockets) expect(await socket.closed).toBe('io server disconnect');
    });

    it('adds for a user who has signed in, in all tabs, until one of them signs out', async () => {
      await tab.goto(instance.origin);
      await click(tab, '#add', 'Sign in first');
      await click(tab, '#sign-in', '/sign-in');
      await click(tab, '#add', 'apple');
      const other = await user.newPage();
      await other.goto(instance.origin);
      await click(other, '#add', 'apple apple');
      await tab.click('#sign-out');
      await other.locator('output', { hasText: 'io server disconnect' }).waitFor();
      await click(tab, '#add', 'Sign in first');
      for (const line of [/^A visitor is here$/m, /^ada is here$/m]) {
        await eventually(() => expect(instance.output).toMatch(line));
      }
    });
  });
});

describeRecipe('graphql', () => {
  afterEach(disposeClients);

  const SUBSCRIPTION = 'subscription { added }';

  async function signedIn(name: string): Promise<HttpAgent> {
    const agent = instance.agent();
    await ask(agent, `mutation { signIn(name: "${name}") { owner } }`);
    return agent;
  }

  it('tells the other devices of a user what one of them adds, and no other user', async () => {
    const [laptop, phone, bobs] = await Promise.all(['ada', 'ada', 'bob'].map(signedIn));
    const heard: unknown[] = [];
    for (const agent of [laptop!, bobs!]) {
      const first = iterate(connect(agent), SUBSCRIPTION).next();
      void first.then(({ value }) => heard.push([agent === laptop, value]));
    }
    // The first ones may be added before the subscriptions are there.
    await eventually(async () => {
      await ask(phone!, 'mutation { add(item: "pear") { items } }');
      expect(heard).toEqual([[true, { data: { added: 'pear' } }]]);
    });
    await eventually(async () => {
      await ask(bobs!, 'mutation { add(item: "plum") { items } }');
      expect(heard).toEqual([expect.anything(), [false, { data: { added: 'plum' } }]]);
    });
  });

  it('refuses the subscription of a visitor', async () => {
    const { value } = await iterate(connect(instance.agent()), SUBSCRIPTION).next();
    expect(JSON.stringify(value)).toContain('Sign in first');
  });
});

// `identity-providers.e2e-spec.ts` has its provider.
describeRecipe('identity-provider');

describeRecipe('health-and-deploys');

describe('with a database,', () => {
  let folderOfDatabase: string;
  const url = () => `file:${join(folderOfDatabase, 'shop.db')}`;

  beforeAll(async () => (folderOfDatabase = await mkdtemp(join(tmpdir(), 'shop-'))));
  afterAll(() => rm(folderOfDatabase, { recursive: true }));

  /** Each test begins with an empty table, as it begins with an empty Redis. */
  function describeWithTable(recipe: string, table: string, tests: () => void) {
    describeRecipe(
      recipe,
      () => {
        beforeEach(async () => {
          const database = createClient({ url: url() });
          await database.execute(`DELETE FROM ${table}`);
          database.close();
        });
        tests();
      },
      () => ({ DATABASE_URL: url() }),
    );
  }

  /** What the page shows that the program prints in the end. */
  const shownBy = (recipe: string) => {
    const parts = codeBlocks(recipeText(recipe), 'text')[0]!.trimEnd().split('...');
    return new RegExp(parts.join('.+'), 'g');
  };

  describeWithTable('unpaid-orders', 'orders', () => {
    const place = (id: string, seconds = 1) => instance.agent().post('/orders', { id, total: 50, seconds });
    const pay = (id: string) => instance.agent().post(`/orders/${id}/pay`);
    const statusOf = async (id: string) =>
      (await instance.agent().get(`/orders/${id}`)).json<{ status: string }>().status;
    const mailsFor = (id: string) => instance.output.split(`order ${id} over`).length - 1;

    it('cancels an order that nobody pays, and prints what the page shows', async () => {
      const printed = () => instance.output.match(shownBy('unpaid-orders'))?.length ?? 0;
      const before = printed();
      await place('o-2');
      await eventually(() => expect(printed()).toBeGreaterThan(before), { timeout: 30_000 });
      expect(await statusOf('o-2')).toBe('cancelled');
      expect((await pay('o-2')).status).toBe(409);
    });

    it('refuses an order that exists', async () => {
      expect((await place('o-3')).status).toBe(201);
      expect((await place('o-3')).status).toBe(409);
    });

    it('either takes a payment of the last second or cancels the order, never both', async () => {
      const ids = Array.from({ length: 50 }, (_, i) => `late-${i}`);
      await place('in-time', 600);
      expect((await pay('in-time')).status).toBe(201);
      const ends = ids.map(async (id, i) => {
        await place(id);
        await sleep(900 + 5 * i);
        const isPaid = (await pay(id)).status === 201;
        await eventually(() => expect(mailsFor(id)).toBe(isPaid ? 0 : 1), { timeout: 30_000 });
        expect(await statusOf(id)).toBe(isPaid ? 'paid' : 'cancelled');
      });
      await Promise.all(ends);
    });
  });

  describeWithTable('held-seats', 'sales', () => {
    const hold = async (seat: string, name: string, seconds = 600) =>
      (await instance.agent().post(`/seats/${seat}/hold`, { name, seconds })).status;
    const buy = async (seat: string, name: string) =>
      (await instance.agent().post(`/seats/${seat}/buy`, { name })).status;

    it('gives a seat to one of many visitors, who can buy it', async () => {
      const names = Array.from({ length: 20 }, (_, i) => `visitor-${i}`);
      const holds = await Promise.all(names.map((name) => hold('1a', name)));
      expect(holds.filter((status) => status === 201)).toHaveLength(1);
      const sales = await Promise.all(names.map((name) => buy('1a', name)));
      expect(sales).toEqual(holds);
    });

    it('answers a repeated request of the holder as the first one', async () => {
      expect([await hold('2a', 'ada'), await hold('2a', 'ada'), await hold('2a', 'bob')]).toEqual([201, 201, 409]);
    });

    it('frees a seat at the end of the hold, and prints what the page shows', async () => {
      const printed = () => instance.output.match(shownBy('held-seats'))?.length ?? 0;
      const before = printed();
      await hold('12b', 'bob', 1);
      await eventually(() => expect(printed()).toBeGreaterThan(before), { timeout: 30_000 });
      expect(await buy('12b', 'bob')).toBe(409);
      expect(await hold('12b', 'ada')).toBe(201);
      expect(await buy('12b', 'ada')).toBe(201);
      expect(await hold('12b', 'bob')).toBe(409);
    });
  });
});

describe('the recipe health-and-deploys, in production', () => {
  let redis: SteppableRedisServer;
  let instances: Instance[];

  beforeEach(async () => {
    redis = await SteppableRedisServer.start();
    instances = [];
  });
  afterEach(async () => {
    await Promise.all(instances.map((instance) => instance.stop()));
    await redis.stop();
  });

  async function start(): Promise<Instance> {
    const instance = await Instance.start('health-and-deploys', redis);
    instances.push(instance);
    return instance;
  }

  const statusOf = async (instance: Instance, path: string) => (await instance.agent().get(path)).status;

  it(
    'reports Redis that does not reply, and stays alive and ready',
    async () => {
      const instance = await start();
      await redis.stop();
      expect([await statusOf(instance, '/health/live'), await statusOf(instance, '/health/ready')]).toEqual([200, 200]);
      const health = await instance.agent().get('/health/sessions');
      const { error } = health.json<{ error: object }>();
      const reasons = ['Redis did not reply within 1000 ms (ECONNREFUSED)'];
      expect({ status: health.status, error }).toEqual({
        status: 503,
        error: { sessions: { status: 'down', redis: 'down', reasons } },
      });
    },
    SLOWLY,
  );

  it(
    'deploys while sessions expire: the owner of every cart is reminded once, and requests are served until the end',
    async () => {
      const old = await start();
      const items = Array.from({ length: 300 }, (_, i) => `item-${i}`);
      await Promise.all(items.map((item) => old.agent().post('/cart', { item })));
      await redis.stepClock(31 * 60_000);
      await eventually(() => expect(old.output).toContain('Sending'), { timeout: 90_000 });
      old.program.child.kill('SIGTERM');
      await eventually(async () => expect(await statusOf(old, '/health/ready')).toBe(503));
      expect((await old.agent().post('/cart', { item: 'pear' })).status).toBe(201);
      const next = await start();
      // Nest ends the process by the signal, after all of its hooks.
      expect(await old.program.exit).toEqual([null, 'SIGTERM']);
      const output = () => old.output + next.output;
      const sent = () => [...output().matchAll(/^Sent \[ '(item-\d+)' \]$/gm)].map(([, item]) => item!);
      await eventually(() => expect(sorted(sent())).toEqual(sorted(items)), { timeout: 90_000 });
      // The old instance has left some to the next one.
      expect(next.output).toContain('Sent');
    },
    SLOWLY,
  );
});

describe('the recipe tests', () => {
  it('names its files', () => {
    expect([...filesOf(TESTS).keys()]).toEqual(['shop.spec.ts', 'vitest.config.ts', 'package.json']);
  });

  it.each([
    { runner: 'Vitest', args: [join(PACKAGES, 'vitest/vitest.mjs'), 'run'] },
    { runner: 'Jest', args: ['--experimental-vm-modules', join(PACKAGES, 'jest/bin/jest.js')] },
  ])(
    'passes under $runner',
    async ({ args }) => {
      const env = { REDIS_URL: 'redis://nowhere.invalid', NODE_OPTIONS: '' };
      const run = Program.start(args, env, join(folder, TESTS));
      await run.exit;
      expect(run.output).toMatch(/^ *Tests:? +3 passed/m);
      expect(run.child.exitCode).toBe(0);
    },
    SLOWLY,
  );
});

function sorted(words: readonly string[]): string[] {
  return words.toSorted((a, b) => a.localeCompare(b));
}

it('docs/getting-started.md leads to every recipe', async () => {
  const text = section(await readFile(join(ROOT, 'docs/getting-started.md'), 'utf8'), 'Whole programs');
  const places = [...RECIPES.values()].map(({ page, heading }) => (heading ? `${page}#${anchorOf(heading)}` : page));
  expect(sorted(links(text).filter((target) => !target.startsWith('#')))).toEqual(sorted(places));
  expect(sorted([...RECIPES.keys()])).toEqual(sorted([...programs, TESTS]));
});
