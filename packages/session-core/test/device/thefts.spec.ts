import { LeakGuard } from '@nest-session/test-infrastructure';
import { ManualClock } from '@nest-session/testing';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';
import { OnSecurityEvent, type SecurityEvent, type SessionModuleOptions } from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { closeApps, startApp } from '../support/session.app.js';
import { DeviceRoutes, MINUTE } from './device.app.js';
import { DeviceBrowser } from './device.browser.js';

LeakGuard.install();
afterEach(closeApps);

let events: string[];

class Hears {
  @OnSecurityEvent('missing-proof', 'refused-proof', 'unknown-token')
  hear({ kind, reason }: SecurityEvent) {
    events.push(reason === undefined ? kind : `${kind} ${reason}`);
  }
}

const AT = [0, 9, 11, 60];

/** What a thief gets at these minutes after the theft, what the owner then gets, and what the application is told. */
interface Loot {
  readonly thief: readonly number[];
  readonly owner: number;
  readonly told: readonly string[];
}

class Scene {
  private constructor(
    readonly owner: DeviceBrowser,
    readonly clock: ManualClock,
  ) {}

  /** `canBind`: whether the browser of the owner can bind a session. */
  static async open(canBind: boolean, mode: 'report' | 'enforce'): Promise<Scene> {
    events = [];
    const session: SessionModuleOptions = { deviceBound: { mode }, timeout: '12h' };
    const clock = new ManualClock(Date.now());
    const store = new GatedRepository({ ...resolveSessionOptions(session), clock });
    const shared = { trustProxy: 'loopback', controllers: [DeviceRoutes], providers: [Hears] };
    const { origin } = await startApp({ ...shared, session, store });
    return new Scene(new DeviceBrowser(origin, canBind), clock);
  }

  /** Signs in, and waits until the browser is bound and no request of before is under way. */
  async signIn(): Promise<void> {
    await this.owner.post('/sign-in');
    await this.owner.get('/inside');
    this.clock.advance(MINUTE);
    events = [];
  }

  /** A browser with the cookies of the owner: all of them, or that of the session alone. */
  thief(what: 'cookie' | 'jar'): DeviceBrowser {
    const thief = this.owner.thief(undefined, false);
    if (what === 'cookie') thief.jar.delete('SESSION-device');
    return thief;
  }

  async loot(thief: DeviceBrowser): Promise<Loot> {
    const got: number[] = [];
    let now = 0;
    for (const at of AT) {
      this.clock.advance((at - now) * MINUTE);
      now = at;
      got.push((await thief.get('/inside')).status);
    }
    const told = [...new Set(events)].toSorted();
    this.owner.jar.delete('SESSION-device');
    return { thief: got, owner: (await this.owner.get('/inside')).status, told };
  }
}

const THEFTS: Record<string, (scene: Scene) => Promise<Loot>> = {
  'a copied cookie': async (scene) => {
    await scene.signIn();
    return scene.loot(scene.thief('cookie'));
  },
  'a copied jar': async (scene) => {
    await scene.signIn();
    return scene.loot(scene.thief('jar'));
  },
  'a copied jar after the sign-out': async (scene) => {
    await scene.signIn();
    const thief = scene.thief('jar');
    await scene.owner.post('/sign-out');
    return scene.loot(thief);
  },
  'a copied jar after a rotation': async (scene) => {
    await scene.signIn();
    const thief = scene.thief('jar');
    await scene.owner.post('/rotate');
    scene.clock.advance(MINUTE);
    return scene.loot(thief);
  },
  'a copied cookie, owner and thief at once': async (scene) => {
    await scene.signIn();
    const thief = scene.thief('cookie');
    await Promise.all(Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? scene.owner : thief).get('/inside')));
    return scene.loot(thief);
  },
  'a copied jar, before the browser has registered': async (scene) => {
    const answer = await scene.owner.send('POST', '/sign-in');
    const thief = scene.thief('jar');
    await scene.owner.takeOffer(answer);
    await scene.owner.get('/inside');
    scene.clock.advance(MINUTE);
    events = [];
    return scene.loot(thief);
  },
};

const EVERYTHING = [200, 200, 200, 200];
const NOTHING = [401, 401, 401, 401];
const TEN_MINUTES = [200, 200, 401, 401];
const MISSING = ['missing-proof missing'];
const UNKNOWN = ['unknown-token'];

it.each<[string, boolean, 'report' | 'enforce', Loot]>([
  ['a copied cookie', true, 'enforce', { thief: NOTHING, owner: 200, told: MISSING }],
  ['a copied cookie', true, 'report', { thief: EVERYTHING, owner: 200, told: MISSING }],
  ['a copied cookie', false, 'enforce', { thief: EVERYTHING, owner: 200, told: [] }],
  ['a copied cookie', false, 'report', { thief: EVERYTHING, owner: 200, told: [] }],
  ['a copied jar', true, 'enforce', { thief: TEN_MINUTES, owner: 200, told: MISSING }],
  ['a copied jar', true, 'report', { thief: EVERYTHING, owner: 200, told: MISSING }],
  ['a copied jar', false, 'enforce', { thief: EVERYTHING, owner: 200, told: [] }],
  ['a copied jar', false, 'report', { thief: EVERYTHING, owner: 200, told: [] }],
  ['a copied jar after the sign-out', true, 'enforce', { thief: NOTHING, owner: 401, told: UNKNOWN }],
  ['a copied jar after the sign-out', true, 'report', { thief: NOTHING, owner: 401, told: UNKNOWN }],
  ['a copied jar after the sign-out', false, 'enforce', { thief: NOTHING, owner: 401, told: UNKNOWN }],
  ['a copied jar after the sign-out', false, 'report', { thief: NOTHING, owner: 401, told: UNKNOWN }],
  ['a copied jar after a rotation', true, 'enforce', { thief: NOTHING, owner: 200, told: UNKNOWN }],
  ['a copied jar after a rotation', true, 'report', { thief: NOTHING, owner: 200, told: UNKNOWN }],
  ['a copied jar after a rotation', false, 'enforce', { thief: NOTHING, owner: 200, told: UNKNOWN }],
  ['a copied jar after a rotation', false, 'report', { thief: NOTHING, owner: 200, told: UNKNOWN }],
  ['a copied cookie, owner and thief at once', true, 'enforce', { thief: NOTHING, owner: 200, told: MISSING }],
  ['a copied cookie, owner and thief at once', true, 'report', { thief: EVERYTHING, owner: 200, told: MISSING }],
  ['a copied cookie, owner and thief at once', false, 'enforce', { thief: EVERYTHING, owner: 200, told: [] }],
  ['a copied cookie, owner and thief at once', false, 'report', { thief: EVERYTHING, owner: 200, told: [] }],
  ['a copied jar, before the browser has registered', true, 'enforce', { thief: NOTHING, owner: 200, told: MISSING }],
  ['a copied jar, before the browser has registered', true, 'report', { thief: EVERYTHING, owner: 200, told: MISSING }],
  ['a copied jar, before the browser has registered', false, 'enforce', { thief: EVERYTHING, owner: 200, told: [] }],
  ['a copied jar, before the browser has registered', false, 'report', { thief: EVERYTHING, owner: 200, told: [] }],
])('%s, where the browser can bind: %p, mode %s', async (theft, canBind, mode, loot) => {
  expect(await THEFTS[theft]!(await Scene.open(canBind, mode))).toEqual(loot);
});
