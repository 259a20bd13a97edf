import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import {
  launchBindingChromium,
  launchChromium,
  selfSignedCertificate,
} from '@nest-session/test-infrastructure/browser';
import { eventually } from '@nest-session/testing';
import { NpmStart } from './support/npm-start.js';

LeakGuard.install();

// Enough time to build the demo on a busy machine, and for the minute after a registration.
const SLOWLY = { timeout: 240_000 };

describe('the demo over https, in a Chromium that binds sessions', () => {
  let folder: string;
  let start: NpmStart;
  let origin: string;
  let browser: BrowserContext;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'demo-tls-'));
    const { cert, key } = await selfSignedCertificate(['localhost']);
    const env = { TLS_CERT: join(folder, 'cert.pem'), TLS_KEY: join(folder, 'key.pem'), TLS_PORT: '0' };
    await writeFile(env.TLS_CERT, cert);
    await writeFile(env.TLS_KEY, key);
    start = await NpmStart.run({ env });
    origin = await start.originOfTls();
    await start.instances(2);
    browser = await launchBindingChromium(cert);
  }, SLOWLY.timeout);

  afterAll(async () => {
    await browser?.close();
    await start?.stop();
    await rm(folder, { recursive: true, force: true });
  }, SLOWLY.timeout);

  async function devicesOf(page: Page): Promise<string> {
    await page.getByRole('button', { name: 'Look again' }).click();
    return page.locator('#devices').innerText();
  }

  it(
    'shows that the session of the visitor is bound, and a copy of its cookie opens nothing',
    async () => {
      const page = await browser.newPage();
      await page.goto(`${origin}/#room`);
      await page.getByRole('button', { name: 'Sign in as ann' }).click();
      await eventually(async () => expect(await devicesOf(page)).toContain('Bound to its browser'), SLOWLY);
      const [cookie] = (await browser.cookies(origin)).filter(({ name }) => name === 'SESSION');

      const other = await launchChromium();
      try {
        const thief = await other.newContext({ ignoreHTTPSErrors: true });
        await thief.addCookies([cookie!]);
        const view = async () => (await (await thief.request.get(`${origin}/session`)).json()) as { isNew: boolean };
        // For a minute, requests may be under way that left before the browser was bound.
        await eventually(async () => expect(await view()).toMatchObject({ isNew: true }), SLOWLY);
      } finally {
        await other.close();
      }
      expect(await devicesOf(page)).toContain('Chromium on Linux, this one');
    },
    SLOWLY.timeout,
  );
});
