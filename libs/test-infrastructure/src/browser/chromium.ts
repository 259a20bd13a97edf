import { type Browser, chromium, type Page } from 'playwright-core';

const FLAGS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-proxy-server',
  // The certificates of the tests are self-signed.
  '--ignore-certificate-errors',
  // Every host name resolves to this machine.
  '--host-resolver-rules=MAP * 127.0.0.1',
];

/** Starts the Chromium of the machine, headless: the program of `CHROMIUM`, which `npm test` sets. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = process.env['CHROMIUM'];
  // Without a path, Playwright looks for a browser that it has installed itself.
  if (!executablePath) throw new Error('CHROMIUM is not set: run the tests with npm test, or set it to a Chromium.');
  return chromium.launch({ executablePath, args: FLAGS, chromiumSandbox: false });
}

/** Opens an address, waits until the page and its frames are loaded, and resolves to the text of the page. */
export async function textAt(page: Page, url: string): Promise<string> {
  await page.goto(url);
  return page.innerText('body');
}
