import { LeakGuard, type Program } from '@nest-session/test-infrastructure';
import { launchChromium, textAt } from '@nest-session/test-infrastructure/browser';
import { eventually, freePort, HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { ProviderPage, Shop } from './support/shop-at-provider.js';

LeakGuard.install();

// Enough time for the compiler, a browser and several programs on a busy machine.
const SLOWLY = 300_000;

let page: ProviderPage;
let redis: RedisServer;
let chromium: Browser;
beforeAll(async () => {
  page = await ProviderPage.compile();
  redis = await RedisServer.start();
  chromium = await launchChromium();
}, SLOWLY);
afterAll(async () => {
  await chromium?.close();
  await redis?.stop();
  await page?.remove();
});

/** The provider, which browsers know by another host than the shop: its redirects come from another site. */
class Provider {
  private constructor(
    readonly issuer: string,
    private readonly program: Program,
  ) {}

  static async start(issuer: string, env: NodeJS.ProcessEnv): Promise<Provider> {
    const provider = new Provider(issuer, page.start('provider', { ...env, ISSUER: issuer }));
    const agent = new HttpAgent(issuer);
    await eventually(() => agent.get('/.well-known/openid-configuration'), { timeout: 60_000 });
    return provider;
  }

  get output(): string {
    return this.program.output;
  }

  async stop(): Promise<void> {
    this.program.child.kill('SIGKILL');
    await this.program.exit;
  }
}

let shop: Shop;
let provider: Provider;
let client: Redis;
const browsers: BrowserContext[] = [];

/** Ends with each test. */
async function start(env: NodeJS.ProcessEnv = {}): Promise<void> {
  const issuer = `http://127.0.0.1:${await freePort()}`;
  shop = await Shop.start(page, { REDIS_URL: redis.url, ISSUER: issuer });
  provider = await Provider.start(issuer, { ...env, SHOP: shop.origin });
}
beforeEach(async () => {
  client = new Redis(redis.url);
  await client.flushall();
});
afterEach(async () => {
  await Promise.all(browsers.splice(0).map((browser) => browser.close()));
  await shop?.stop();
  await provider?.stop();
  await client.quit();
});

async function open(): Promise<Page> {
  const browser = await chromium.newContext();
  browser.setDefaultTimeout(SLOWLY);
  browsers.push(browser);
  return browser.newPage();
}

/** Logs in with the pages of the provider. */
async function signIn(tab: Page, name: string): Promise<void> {
  await tab.goto(`${shop.origin}/sign-in`);
  await fillIn(tab, name);
}

async function fillIn(tab: Page, name: string): Promise<void> {
  await tab.fill('[name=login]', name);
  await tab.fill('[name=password]', 'any');
  await tab.click('[type=submit]');
  await tab.getByRole('button', { name: 'Continue' }).click();
  await tab.waitForURL(`${shop.origin}/me`);
}

const signedIn = async (name: string): Promise<Page> => {
  const tab = await open();
  await signIn(tab, name);
  return tab;
};
const me = (tab: Page) => textAt(tab, `${shop.origin}/me`);

/** Ends the user's session at the provider, as somebody does who signs out there or in another application. */
async function endAtProvider(tab: Page): Promise<void> {
  await tab.goto(`${provider.issuer}/session/end`);
  await confirmSignOut(tab);
}

async function confirmSignOut(tab: Page): Promise<void> {
  await tab.getByRole('button', { name: 'Yes, sign me out' }).click();
}

describe('the login by openid-client', () => {
  it(
    'signs in under a new token: who copied the cookie before is not signed in',
    async () => {
      await start();
      const tab = await open();
      await tab.goto(`${shop.origin}/sign-in`);
      const before = await tab.context().cookies(shop.origin);
      await signIn(tab, 'ada');
      expect(await me(tab)).toBe('{"user":"ada"}');
      const thief = await open();
      await thief.context().addCookies(before);
      expect(await me(thief)).toContain('not-authenticated');
    },
    SLOWLY,
  );

  it(
    'takes the response of the provider once, and only from the browser that began',
    async () => {
      await start();
      const [laptop, phone] = [await open(), await open()];
      const callbacks: string[] = [];
      laptop.on('request', (request) => {
        if (request.url().startsWith(`${shop.origin}/callback`)) callbacks.push(request.url());
      });
      await signIn(laptop, 'ada');
      expect(callbacks).toHaveLength(1);
      const used = callbacks[0]!;
      expect(await textAt(phone, used)).toContain('This browser did not begin here');
      // The phone has a login of its own under way, which the state of another one does not end.
      await phone.goto(`${shop.origin}/sign-in`);
      const loginPage = phone.url();
      expect(await textAt(phone, used)).toContain('The provider did not sign you in');
      expect(await textAt(laptop, used)).toContain('This browser did not begin here');
      await phone.goto(loginPage);
      await fillIn(phone, 'bob');
      expect([await me(laptop), await me(phone)]).toEqual(['{"user":"ada"}', '{"user":"bob"}']);
    },
    SLOWLY,
  );

  it(
    'is refused by the shop when the user does not agree, and works when the user tries again',
    async () => {
      await start();
      const tab = await open();
      await tab.goto(`${shop.origin}/sign-in`);
      await tab.getByRole('link', { name: 'Cancel' }).click();
      await tab.getByText('The provider did not sign you in').waitFor();
      await signIn(tab, 'ada');
    },
    SLOWLY,
  );

  it(
    'fails while the provider is down, and works as soon as it is there',
    async () => {
      await start();
      await provider.stop();
      const tab = await open();
      expect(await textAt(tab, `${shop.origin}/sign-in`)).toContain('The provider cannot be asked');
      provider = await Provider.start(provider.issuer, { SHOP: shop.origin });
      await signIn(tab, 'ada');
    },
    SLOWLY,
  );
});

describe('a sign-out at the shop', () => {
  it(
    'ends the session of the shop and that of the provider, and comes back',
    async () => {
      await start();
      const tab = await signedIn('ada');
      await tab.goto(shop.origin);
      await tab.getByRole('button', { name: 'Sign out' }).click();
      // Before anything else: a user who goes away here is signed out of the shop.
      await tab.getByText('Do you want to sign-out').waitFor();
      const other = await tab.context().newPage();
      expect(await me(other)).toContain('not-authenticated');
      await confirmSignOut(tab);
      await tab.waitForURL(`${shop.origin}/`);
      // The provider asks for the password again.
      await signIn(tab, 'bob');
      expect(await me(tab)).toBe('{"user":"bob"}');
    },
    SLOWLY,
  );
});

describe('a sign-out at the provider', () => {
  it(
    'ends the session of that browser alone, where the provider sends the id of its session',
    async () => {
      await start();
      const [laptop, phone] = [await signedIn('ada'), await signedIn('ada')];
      await endAtProvider(laptop);
      await eventually(() => expect(provider.output).toContain('shop ended ada'), { timeout: 60_000 });
      expect(await me(laptop)).toContain('not-authenticated');
      expect(await me(phone)).toBe('{"user":"ada"}');
      expect(shop.logouts.map(({ status }) => status)).toEqual([200]);
      await eventually(() => expect(shop.output).toContain('The provider told back-channel: 1 sessions'));
    },
    SLOWLY,
  );

  it(
    'ends all sessions of the user, where the provider sends the user alone, as by default, and no later one',
    async () => {
      await start({ SID: 'no' });
      const [laptop, phone, bobs] = [await signedIn('ada'), await signedIn('ada'), await signedIn('bob')];
      await endAtProvider(laptop);
      await eventually(() => expect(provider.output).toContain('shop ended ada'), { timeout: 60_000 });
      for (const tab of [laptop, phone]) expect(await me(tab)).toContain('not-authenticated');
      expect(await me(bobs)).toBe('{"user":"bob"}');
      // Times in tokens are whole seconds: who signs in again within the same one would be asked to do so once more.
      await eventually(() => expect(Date.now() / 1000).toBeGreaterThan(shop.logouts[0]!.claims.iat + 1));
      await signIn(laptop, 'ada');
      expect(await shop.repeat()).toBe(200);
      expect(await me(laptop)).toBe('{"user":"ada"}');
    },
    SLOWLY,
  );

  it.each([{ SID: 'yes' }, { SID: 'no' }])(
    'is told as failed to the provider while Redis is down, and a repeat ends the sessions ($SID)',
    async (env) => {
      await start(env);
      const [laptop, phone] = [await signedIn('ada'), await signedIn('ada')];
      redis.freeze();
      try {
        await endAtProvider(laptop);
        await eventually(() => expect(provider.output).toMatch(/expected 200 OK .* got: 503/), { timeout: 60_000 });
        expect(provider.output).not.toContain('shop ended');
      } finally {
        redis.thaw();
      }
      // Nobody repeats for oidc-provider.
      await eventually(async () => expect(await shop.repeat()).toBe(200), { timeout: 60_000 });
      expect(await me(laptop)).toContain('not-authenticated');
      const isStillIn = env.SID === 'yes';
      expect((await me(phone)).includes('"ada"')).toBe(isStillIn);
    },
    SLOWLY,
  );
});
