import { readFileSync } from 'node:fs';
import { OnSecurityEvent, type SecurityEvent } from '../../src/index.js';
import { MINUTE } from './device.app.js';
import { DeviceBrowser } from './device.browser.js';

/** The kinds of the security events since the theft. */
const events = new Set<string>();

export class HearsThefts {
  @OnSecurityEvent('missing-proof', 'refused-proof', 'unknown-token')
  hear({ kind }: SecurityEvent) {
    events.add(kind);
  }
}

/** The browser of the user. */
export interface Owner {
  /** Signs in, and is not registered yet. */
  begin(): Promise<void>;
  /** Registers if it can; with `isLost`, in vain. */
  register(isLost?: boolean): Promise<void>;
  post(path: string): Promise<void>;
  /** Opens a page of a signed-in user, with a new proof if it can. */
  visit(): Promise<number>;
  cookies(): Promise<ReadonlyMap<string, string>>;
}

interface Scene {
  readonly owner: Owner;
  /** Where thieves find the application. */
  readonly origin: string;
  readonly clock: { advance(ms: number): Promise<void> | void };
}

/** What thief and owner get, and what the application is told of. */
interface Loot {
  readonly thief: 'everything' | 'everything for `lifetime`, then nothing' | 'nothing';
  readonly isOwnerIn: boolean;
  readonly told: readonly string[];
  /** Whether the application is told not before the proof of the owner is over. */
  readonly isToldLate: boolean;
}

const SHARES: Record<string, Loot['thief']> = {
  'in in in in': 'everything',
  'in in out out': 'everything for `lifetime`, then nothing',
  'out out out out': 'nothing',
};

async function lootOf({ owner, clock }: Scene, thief: DeviceBrowser): Promise<Loot> {
  const got: string[] = [];
  let [now, toldAt] = [0, -1];
  for (const at of [0, 9, 11, 60]) {
    await clock.advance((at - now) * MINUTE);
    now = at;
    // If the thief is bound, with a new proof.
    if (thief.binding) thief.jar.delete(thief.binding.cookie);
    got.push((await thief.get('/inside')).status === 200 ? 'in' : 'out');
    if (events.size > 0 && toldAt < 0) toldAt = at;
  }
  const isOwnerIn = (await owner.visit()) === 200;
  return { thief: SHARES[got.join(' ')]!, isOwnerIn, told: [...events].toSorted(), isToldLate: toldAt === 11 };
}

/** A browser with the cookies of the owner: all of them, or that of the session alone. */
async function thiefOf({ owner, origin }: Scene, what: 'cookie' | 'jar', canBind = false): Promise<DeviceBrowser> {
  const thief = new DeviceBrowser(origin, canBind);
  for (const [name, value] of await owner.cookies())
    if (what === 'jar' || !name.endsWith('-device')) thief.jar.set(name, value);
  return thief;
}

/** Waits until no request of before the registration is under way, and forgets what was told. */
async function settle({ owner, clock }: Scene): Promise<void> {
  await owner.visit();
  await clock.advance(MINUTE);
  events.clear();
}

async function signIn(scene: Scene): Promise<void> {
  await scene.owner.begin();
  await scene.owner.register();
  await settle(scene);
}

/** By their names in the first column of the table in docs/stolen-cookies.md. */
export const THEFTS: Record<string, (scene: Scene) => Promise<Loot>> = {
  'the session cookie was copied': async (scene) => {
    await signIn(scene);
    return lootOf(scene, await thiefOf(scene, 'cookie'));
  },
  'all cookies were copied': async (scene) => {
    await signIn(scene);
    return lootOf(scene, await thiefOf(scene, 'jar'));
  },
  'all cookies were copied, and the user has signed out': async (scene) => {
    await signIn(scene);
    const thief = await thiefOf(scene, 'jar');
    await scene.owner.post('/sign-out');
    return lootOf(scene, thief);
  },
  'all cookies were copied, and the session has another id': async (scene) => {
    await signIn(scene);
    const thief = await thiefOf(scene, 'jar');
    await scene.owner.post('/rotate');
    return lootOf(scene, thief);
  },
  'all cookies were copied before the browser registered': async (scene) => {
    await scene.owner.begin();
    const thief = await thiefOf(scene, 'jar');
    await scene.owner.register();
    await settle(scene);
    return lootOf(scene, thief);
  },
  'thief and user come at the same time': async (scene) => {
    await signIn(scene);
    const thief = await thiefOf(scene, 'cookie');
    const visits = Array.from({ length: 5 }, () => thief.get('/inside'));
    // Chromium proves no more than five times.
    for (let i = 0; i < 2; i++) await scene.owner.visit();
    await Promise.all(visits);
    return lootOf(scene, thief);
  },
  'the thief has registered first': async (scene) => {
    await scene.owner.begin();
    const thief = await thiefOf(scene, 'jar', true);
    await scene.owner.register(true);
    await scene.clock.advance(MINUTE);
    await thief.get('/inside');
    await thief.get('/inside');
    await settle(scene);
    return lootOf(scene, thief);
  },
};

export type Column = 'bound, enforce' | 'bound, report' | 'cannot bind, enforce' | 'cannot bind, report';

/** What the page says of a theft. */
export function documentedLoot(theft: string, column: Column): Loot {
  const page = readFileSync(new URL('../../../../docs/stolen-cookies.md', import.meta.url), 'utf8');
  const rows = page
    .split('\n')
    .flatMap((line) => (line.startsWith('|') ? [line.split('|').map((cell) => cell.trim())] : []));
  const at = rows.find(([, first]) => first === 'what happened')!.findIndex((cell) => cell === column);
  const cell = rows.find(([, first]) => first === theft)![at]!;
  const [, thief, isOwnerOut, told = ''] = /^(.+?)(, the user nothing)?(?: \((.+)\))?$/.exec(cell)!;
  return {
    thief: thief as Loot['thief'],
    isOwnerIn: isOwnerOut === undefined && !theft.includes('signed out'),
    told: [...told.matchAll(/`([a-z-]+-[a-z-]+)`/g)].map(([, kind]) => kind!),
    isToldLate: told.includes('after'),
  };
}
