import type { SessionModuleOptions } from '../../src/index.js';
import type { Devices } from './device.app.js';
import { type Answer, DeviceBrowser } from './device.browser.js';
import { type Column, documentedLoot, HearsThefts, type Owner, THEFTS } from './device.thefts.js';

function ownerOf(browser: DeviceBrowser): Owner {
  let signedIn: Answer;
  return {
    begin: async () => void (signedIn = await browser.send('POST', '/sign-in')),
    register: (isLost = false) => (isLost ? Promise.resolve() : browser.takeOffer(signedIn)),
    post: async (path) => void (await browser.post(path)),
    visit: async () => {
      browser.jar.delete('SESSION-device');
      return (await browser.get('/inside')).status;
    },
    cookies: () => Promise.resolve(browser.jar),
  };
}

const COLUMNS: readonly Column[] = ['bound, enforce', 'bound, report', 'cannot bind, enforce', 'cannot bind, report'];

/** What thieves get, by docs/stolen-cookies.md. */
export function describeThefts({ startDevices }: Devices): void {
  async function lootOf(
    theft: string,
    canBind: boolean,
    deviceBound: NonNullable<SessionModuleOptions['deviceBound']>,
  ) {
    const { origin, clock } = await startDevices(deviceBound, { providers: [HearsThefts] });
    return THEFTS[theft]!({ owner: ownerOf(new DeviceBrowser(origin, canBind)), origin, clock });
  }

  it.each(Object.keys(THEFTS).flatMap((theft) => COLUMNS.map((column) => [theft, column] as const)))(
    'a thief gets what the page says when %s: %s',
    async (theft, column) => {
      const mode = column.endsWith('enforce') ? 'enforce' : 'report';
      expect(await lootOf(theft, column.startsWith('bound'), { mode })).toEqual(documentedLoot(theft, column));
    },
  );

  it.each(Object.keys(THEFTS).filter((theft) => !theft.includes('registered first')))(
    'a thief gets what the last column says when %s, without the option',
    async (theft) => {
      expect(await lootOf(theft, true, false)).toEqual(documentedLoot(theft, 'cannot bind, report'));
    },
  );
}
