import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { keyHashOf } from './certificate.js';

const FLAGS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-proxy-server',
  // Every host name resolves to this machine.
  '--host-resolver-rules=MAP * 127.0.0.1',
];

/** Starts the Chromium of the machine, headless: the program of `CHROMIUM`, which `npm test` sets. */
export async function launchChromium(): Promise<Browser> {
  // The certificates of the tests are self-signed.
  const args = [...FLAGS, '--ignore-certificate-errors'];
  return chromium.launch({ executablePath: programOf(), args, chromiumSandbox: false });
}

/** Switched on in the profile: flags of the command line alone do not do it. The keys are in software. */
const BINDING = [
  'enable-standard-device-bound-session-credentials@1',
  'enable-bound-session-credentials-software-keys-for-manual-testing@1',
];

/**
 * Starts a Chromium that binds sessions, with a fresh profile and its one context: `close()` removes the profile. It
 * trusts this certificate, and counts as a browser whose certificates are valid: for others it binds nothing. `env`:
 * what it adds to the environment, such as that of a `ProgramClock`.
 */
export async function launchBindingChromium(
  cert: string,
  env: Readonly<Record<string, string>> = {},
): Promise<BrowserContext> {
  const profile = await mkdtemp(join(tmpdir(), 'binding-chromium-'));
  await writeFile(join(profile, 'Local State'), JSON.stringify({ browser: { enabled_labs_experiments: BINDING } }));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: programOf(),
    args: [...FLAGS, `--ignore-certificate-errors-spki-list=${keyHashOf(cert)}`],
    chromiumSandbox: false,
    env: { ...process.env, ...env },
  });
  context.on('close', () => void rm(profile, { recursive: true, force: true, maxRetries: 5 }));
  return context;
}

function programOf(): string {
  const executablePath = process.env['CHROMIUM'];
  // Without a path, Playwright looks for a browser that it has installed itself.
  if (!executablePath) throw new Error('CHROMIUM is not set: run the tests with npm test, or set it to a Chromium.');
  return executablePath;
}

/** Opens an address, waits until the page and its frames are loaded, and resolves to the text of the page. */
export async function textAt(page: Page, url: string): Promise<string> {
  await page.goto(url);
  return page.innerText('body');
}
