import type { Browser, BrowserContext, Page } from 'playwright-core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { launchChromium } from '@nest-session/test-infrastructure/browser';
import { eventually } from '@nest-session/testing';
import { NpmStart } from './support/npm-start.js';

LeakGuard.install();

// Enough time to build the demo, and for a killed instance to start again, on a busy machine.
const SLOWLY = { timeout: 180_000 };

// Less than SLOWLY, so that a test that fails says what it waited for.
const WITHIN_A_MINUTE = { timeout: 60_000 };

describe('the split screen of the demo, in Chromium', () => {
  let start: NpmStart;
  let browser: Browser;
  let user: BrowserContext;
  let page: Page;
  /** How many there are while no instance is killed. */
  let processes: number;
  /** What the page has thrown, and what Chromium has reported of it. */
  const errors: string[] = [];

  beforeAll(async () => {
    start = await NpmStart.run();
    const baseURL = await start.origin();
    await start.instances(2);
    processes = (await start.processes()).length;
    browser = await launchChromium();
    user = await browser.newContext({ baseURL });
    page = await user.newPage();
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    await page.goto('/');
  }, SLOWLY.timeout);

  afterAll(async () => {
    await browser?.close();
    await start?.stop();
  }, SLOWLY.timeout);

  afterEach(() => expect(errors.splice(0)).toEqual([]));

  /** Presses the button, and resolves to what is shown of each side when both have been measured. */
  async function press(button: string, scenario: string, within = WITHIN_A_MINUTE): Promise<string[]> {
    await page.getByRole('button', { name: button, exact: true }).click();
    const findings = page.locator(`#${scenario} .finding`);
    return eventually(async () => {
      const texts = await findings.allInnerTexts();
      expect(texts).toEqual([expect.stringMatching(/^(Right|Slow|Wrong): /), expect.stringMatching(/^Right: /)]);
      return texts;
    }, within);
  }

  it(
    'has a button for each scenario, which can be pressed, and starts no session of the visitor',
    async () => {
      const buttons = page.locator('#scenarios button');
      await buttons.nth(7).waitFor();
      expect(await buttons.allInnerTexts()).toEqual([
        'Two tabs add at once',
        'Redirect after a login, slow Redis',
        'Log out during a slow request',
        'A copied cookie',
        'kill -9 before the mail',
        'Redis frozen',
        'Log out everywhere',
        'An order that nobody pays',
      ]);
      expect(await page.locator('#scenarios button:disabled').count()).toBe(0);
      expect(await user.cookies()).toEqual([]);
    },
    SLOWLY.timeout,
  );

  it(
    'shows that two tabs lose an item on the left, and none on the right',
    async () => {
      const [left, right] = await press('Two tabs add at once', 'two-tabs');
      expect(left).toMatch(
        /^Wrong: The (lantern|teapot) is lost: the cart has only apple, (lantern|teapot)\. Both .*\(201 and 201\)\.$/,
      );
      expect(right).toMatch(/^Right: Both items are in the cart: apple, (lantern, teapot|teapot, lantern)\.$/);
      await page.locator('#two-tabs-express-session summary').click();
      expect(await page.locator('#two-tabs-express-session .requests').innerText()).toMatch(
        /^POST \/compared\/cart {1,2}201 {1,2}\d+ ms\n/,
      );
    },
    SLOWLY.timeout,
  );

  it(
    'shows that a redirect comes too early on the left, and when the session is stored on the right',
    async () => {
      const [left, right] = await press('Redirect after a login, slow Redis', 'redirect');
      expect(left).toMatch(/^Wrong: The redirect came after \d{1,3} ms, .* you are not signed in\.$/);
      expect(right).toMatch(
        /^Right: The redirect came after (\d{3} ms|\d\.\d s), and the page behind it greeted carol\.$/,
      );
    },
    SLOWLY.timeout,
  );

  it(
    'shows that a slow request brings back a session on the left, and none on the right',
    async () => {
      const [left, right] = await press('Log out during a slow request', 'sign-out');
      expect(left).toMatch(/^Wrong: Logged out \(204\)\..* the old cookie is logged in as carol\.$/);
      expect(right).toMatch(
        /^Right: Logged out \(204\)\. The slow request ended \(20\d\), and the old cookie is still logged out\.$/,
      );
    },
    SLOWLY.timeout,
  );

  it(
    'shows that a copied cookie opens the session on the left, and nothing on the right',
    async () => {
      // The user signs in when the page is opened, and the thief comes a minute later.
      const [left, right] = await press('A copied cookie', 'stolen-cookie', { timeout: 120_000 });
      const thief = 'With the copied cookie, the browser of the thief is signed in as';
      expect(left).toBe(`Wrong: ${thief} dora, and dora is still signed in.`);
      expect(right).toBe(`Right: ${thief} nobody, and dora is still signed in.`);
    },
    SLOWLY.timeout,
  );

  it(
    'compares for one visitor at a time, and tells the other to wait',
    async () => {
      const other = await user.newPage();
      await other.goto('/');
      await other.locator('#run-two-tabs').waitFor();
      const pressed = press('Log out during a slow request', 'sign-out');
      await page.getByText('Running …').first().waitFor();
      await other.getByRole('button', { name: 'Two tabs add at once' }).click();
      await other.getByText('Someone else compares at this moment: try again in a few seconds').waitFor();
      await pressed;
      await other.close();
    },
    SLOWLY.timeout,
  );

  it(
    'shows that a request hangs on the left, and gets an error on the right, and that neither loses anything',
    async () => {
      const [left, right] = await press('Redis frozen', 'frozen');
      expect(left).toMatch(/^Slow: A request was answered with 200 after [345]\.\d s: .* The cart is still there\.$/);
      expect(right).toMatch(/^Right: A request was answered with 503 after [12]\.\d s: .* The cart is still there\.$/);
    },
    SLOWLY.timeout,
  );

  it(
    'shows that a logout everywhere leaves the sockets open on the left, and closes them on the right',
    async () => {
      const [left, right] = await press('Log out everywhere', 'everywhere');
      expect(left).toMatch(
        /^Wrong: The logout was answered \(200\) after .*\. Both phones are logged out, but 2 of 2 sockets are open and answer as carol\.$/,
      );
      expect(right).toMatch(
        /^Right: The logout was answered \(200\) after .*\. Both phones are logged out, and the server has closed both sockets\.$/,
      );
    },
    SLOWLY.timeout,
  );

  it(
    'shows that a killed instance takes the mail with it on the left, and that another one writes it on the right',
    async () => {
      const [left, right] = await press('kill -9 before the mail', 'killed');
      expect(left).toMatch(/^Wrong: Instance \d was killed before the mail, and \d+\.\d s later there is none/);
      const [, killed, writer] = /^Right: Instance (\d) was killed .* Then instance (\d) wrote it.*: lantern\.$/.exec(
        right!,
      )!;
      expect(writer).not.toBe(killed);
      expect(start.output).toMatch(/Instance \d of express-session was ended by SIGKILL/);
      expect(start.output).toMatch(/Instance \d was ended by SIGKILL/);
      // The answer may have been that of the killed instance.
      expect(errors.splice(0).filter((text) => !/net::ERR_/.test(text))).toEqual([]);
    },
    SLOWLY.timeout,
  );

  it(
    'shows that an order is cancelled on the right only, when the instance that took it is killed',
    async () => {
      // Killed by the button before.
      await eventually(async () => expect(await start.processes()).toHaveLength(processes), WITHIN_A_MINUTE);
      await start.instances(2);
      const [left, right] = await press('An order that nobody pays', 'unpaid-order');
      expect(left).toMatch(
        /^Wrong: Instance \d took the order, and was killed\. Due after 3 s, it is still not cancelled after \d+\.\d s\.$/,
      );
      const [, killed, canceller] =
        /^Right: Instance (\d) took .* Due after 3 s, it was cancelled by instance (\d) after \d+\.\d s\.$/.exec(
          right!,
        )!;
      expect(canceller).not.toBe(killed);
      expect(errors.splice(0).filter((text) => !/net::ERR_/.test(text))).toEqual([]);
    },
    SLOWLY.timeout,
  );

  it('has counted how often each side was right', async () => {
    expect(await page.locator('#score').innerText()).toBe('Right: express-session 0 of 8, nest-session 8 of 8');
  });

  it(
    'runs all from the top, and explains each after it was run',
    async () => {
      // Killed by the button before.
      await eventually(async () => expect(await start.processes()).toHaveLength(processes), WITHIN_A_MINUTE);
      await start.instances(2);
      await page.reload();
      await page.getByRole('button', { name: 'Run all' }).click();
      const explained = page.locator('[id^=why-]:visible');
      expect(await explained.count()).toBe(0);
      await page.locator('#why-redirect').waitFor({ timeout: 60_000 });
      expect(await explained.evaluateAll((all) => all.map(({ id }) => id))).toEqual(['why-two-tabs', 'why-redirect']);
      expect(await page.locator('#score').innerText()).toBe('Right: express-session 0 of 2, nest-session 2 of 2');
    },
    SLOWLY.timeout,
  );
});
