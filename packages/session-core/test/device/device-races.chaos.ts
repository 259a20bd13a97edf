import { setImmediate as turn } from 'node:timers/promises';
import { Controller, Post } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { ManualClock } from '@nest-session/testing';
import fc from 'fast-check';
import { DEVICE_INDEX } from '../../src/device/device-binding.js';
import { Sessions } from '../../src/index.js';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';
import type { SessionChange, SessionRecord, WriteReply } from '../../src/store.js';
import { closeApps, startApp } from '../support/session.app.js';
import { DeviceRoutes, MINUTE } from './device.app.js';
import { type Answer, DeviceBrowser, newKey, offerIn } from './device.browser.js';
import { GatedRepository, STORE_FAILURE } from '../support/gated.repository.js';

LeakGuard.install();

const LIFETIME = 10 * MINUTE;

@Controller()
class EndingRoutes {
  constructor(private readonly sessions: Sessions) {}

  @Post('end-all')
  async endAll() {
    await this.sessions.endAll('ann');
  }
}

/** The store in memory, whose calls take up to four turns of the event loop on the way there and on the way back. */
class SlowRepository extends GatedRepository {
  #turns: readonly number[] = [];
  #calls = 0;
  /** Which calls are done, but fail for the caller. */
  #lost: ReadonlySet<number> = new Set();
  /** Whether a reply was lost since the last `begin()`. */
  hasLost = false;

  begin(turns: readonly number[] = [], lost: readonly number[] = []): void {
    this.#turns = turns;
    this.#lost = new Set(lost);
    this.#calls = 0;
    this.hasLost = false;
  }

  override load(ids: readonly string[]): Promise<SessionRecord[]> {
    return this.#slowly(() => super.load(ids));
  }

  override write(change: SessionChange): Promise<WriteReply> {
    return this.#slowly(() => super.write(change));
  }

  protected override lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    return this.#slowly(() => super.lookUp(indexName, value));
  }

  protected override readClock(): Promise<number> {
    return this.#slowly(() => super.readClock());
  }

  async #slowly<T>(call: () => Promise<T>): Promise<T> {
    const number = this.#calls++;
    const turns = this.#turns.length === 0 ? 0 : this.#turns[number % this.#turns.length]!;
    for (let i = 0; i < (turns & 3); i++) await turn();
    const reply = await call();
    for (let i = 0; i < turns >> 2; i++) await turn();
    if (!this.#lost.has(number)) return reply;
    this.hasLost = true;
    throw STORE_FAILURE;
  }
}

/** What happens at once: by the browser, in a second tab of it, by somebody who has copied all, by a second browser. */
const STEPS = [
  'register',
  'register-in-second-tab',
  'register-as-thief',
  'visit',
  'visit-as-thief',
  'refresh',
  'refresh-in-second-tab',
  'rotate',
  'sign-in',
  'sign-out',
  'end-all',
  'sign-in-elsewhere',
] as const;
type Step = (typeof STEPS)[number];

const program = fc.record({
  /** Whether the browser is bound before it begins. */
  isBound: fc.boolean(),
  steps: fc.uniqueArray(fc.record({ step: fc.constantFrom(...STEPS), after: fc.nat(6) }), {
    minLength: 2,
    maxLength: 5,
    selector: ({ step }) => step,
  }),
  turns: fc.array(fc.nat(15), { maxLength: 12 }),
  lost: fc.array(fc.nat(12), { maxLength: 1 }),
});
type Program = typeof program extends fc.Arbitrary<infer T> ? T : never;

async function start() {
  const session = {
    deviceBound: { mode: 'enforce' as const },
    timeout: '12h' as const,
    maxSessions: { perPrincipal: 1 },
  };
  const clock = new ManualClock(Date.now());
  const store = new SlowRepository({ ...resolveSessionOptions(session), clock });
  const shared = { trustProxy: 'loopback', controllers: [DeviceRoutes, EndingRoutes] };
  const { origin, log } = await startApp({ ...shared, session, store });
  return { store, clock, origin, log };
}

let world: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  world = await start();
});
afterAll(closeApps);

/** One user with a browser and a second one, and a thief, each with what he knows when the race begins. */
class Race {
  readonly owner = new DeviceBrowser(world.origin);
  readonly elsewhere = new DeviceBrowser(world.origin);
  thief!: DeviceBrowser;
  readonly answers = new Map<Step, Answer>();
  #offer: { readonly path: string; readonly challenge: string } | undefined;

  constructor(private readonly of: Program) {}

  async prepare(): Promise<void> {
    world.store.begin();
    await new DeviceBrowser(world.origin).post('/end-all');
    await this.elsewhere.send('POST', '/sign-out');
    const signedIn = await this.owner.send('POST', '/sign-in');
    this.#offer = offerIn(signedIn);
    if (this.of.isBound) {
      await this.owner.takeOffer(signedIn);
      await this.owner.get('/who');
      world.clock.advance(MINUTE);
    }
    this.thief = this.owner.thief();
  }

  async run(): Promise<void> {
    const { store } = world;
    store.begin(this.of.turns, this.of.lost);
    await Promise.all(
      this.of.steps.map(async ({ step, after }) => {
        for (let i = 0; i < after; i++) await turn();
        const answer = await this.#take(step);
        if (answer) this.answers.set(step, answer);
      }),
    );
  }

  #take(step: Step): Promise<Answer> | undefined {
    const { owner, thief, elsewhere } = this;
    const offer = this.#offer!;
    switch (step) {
      case 'register':
      case 'register-in-second-tab':
        return this.of.isBound ? undefined : owner.register(offer.path, offer.challenge, this.#key);
      case 'register-as-thief':
        return thief.register(offer.path, offer.challenge);
      case 'visit':
        return owner.get('/inside');
      case 'visit-as-thief':
        return thief.get('/inside');
      case 'refresh':
      case 'refresh-in-second-tab':
        return owner.binding && owner.sendRefresh(owner.binding.challenge === undefined ? {} : owner.proof());
      case 'rotate':
        return owner.post('/rotate');
      case 'sign-in':
        return owner.send('POST', '/sign-in');
      case 'sign-out':
        return owner.post('/sign-out');
      case 'end-all':
        return new DeviceBrowser(world.origin).post('/end-all');
      case 'sign-in-elsewhere':
        return elsewhere.send('POST', '/sign-in');
    }
  }

  readonly #key = newKey();

  has(...steps: Step[]): boolean {
    return this.of.steps.some(({ step }) => steps.includes(step));
  }

  isDone(step: Step): boolean {
    const status = this.answers.get(step)?.status ?? 0;
    return status >= 200 && status < 300;
  }
}

async function isIn(browser: DeviceBrowser): Promise<boolean> {
  return (await browser.get('/inside')).status === 200;
}

const RUNS = Number(process.env['RACES'] ?? 60);

it(`of ${RUNS} races of a user, his browsers and a thief, none leaves a second key, a way in or a user outside`, async () => {
  const { store, clock } = world;
  await fc.assert(
    fc.asyncProperty(program, async (of) => {
      const race = new Race(of);
      await race.prepare();
      const { owner, thief, elsewhere } = race;
      await race.run();
      const { hasLost } = store;
      store.begin();
      clock.advance(MINUTE);

      // One binding has one key.
      const stolen = race.isDone('register-as-thief');
      if (stolen && owner.binding?.id === thief.binding?.id) {
        expect(race.isDone('register') || race.isDone('register-in-second-tab')).toBe(false);
      }

      // What ended is over for everybody, however it was bound meanwhile.
      const signsIn = race.has('sign-in', 'sign-in-elsewhere');
      const isEnded = race.isDone('end-all') || race.isDone('sign-out');
      if (isEnded && !signsIn) {
        for (const browser of [owner, thief]) expect(await isIn(browser)).toBe(false);
        for (const { binding } of [owner, thief]) {
          if (binding) expect(await store.findByIndex(DEVICE_INDEX, binding.id)).toEqual([]);
        }
      }
      // There is room for one.
      if (race.isDone('sign-in-elsewhere') && !race.has('sign-in', 'end-all', 'sign-out')) {
        expect(await isIn(owner)).toBe(false);
        expect(await isIn(thief)).toBe(false);
      }

      // Nobody is signed out who did not ask for it.
      const mayBeOut =
        race.has('sign-out', 'end-all', 'sign-in-elsewhere') || (hasLost && race.has('sign-in', 'rotate'));
      if (!mayBeOut && !stolen) expect(await isIn(owner)).toBe(true);

      // Whoever is signed in is bound with the second page at the latest, or after the next sign-in.
      for (let pages = 0; pages < 2; pages++) {
        clock.advance(MINUTE);
        // A thief who has registered first stays, and the owner may be served for a minute after it.
        if (!(await isIn(owner))) await owner.post('/sign-in');
        await owner.get('/who');
      }
      expect((await owner.get('/money')).body).toBe('money');

      // From then on, copies open nothing; nor do those whose bound cookie is over.
      clock.advance(MINUTE);
      for (const copy of [thief, owner.thief()]) {
        clock.advance(LIFETIME);
        copy.binding = undefined;
        expect((await copy.get('/money')).status).not.toBe(200);
        expect(await isIn(copy)).toBe(false);
      }
      expect(await isIn(elsewhere)).toBe(false);
    }),
    { numRuns: RUNS },
  );
});
