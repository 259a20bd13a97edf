import type { Session } from '@nest-session/core';
import { type SaveOutcome, type TouchOutcome, TrackedSession } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import fc from 'fast-check';
import { MINUTE } from '../support/store.fixture.js';
import { TimedMapStore, TimedRedisStore, type TimedStore } from '../support/timed.store.js';

LeakGuard.install();

/** A step: time passes, or a request loads the session and acts, perhaps keeping it idle. */
type Step =
  | { readonly does: 'wait'; readonly minutes: number }
  | { readonly does: 'touch' | 'rotate and touch late' | 'rotate and save late' }
  | { readonly does: 'save' | 'update' | 'principal' | 'rotate'; readonly keepsIdle: boolean }
  | { readonly does: 'interval' | 'absoluteTimeout'; readonly minutes: number | 'never'; readonly keepsIdle: boolean };

const minutes = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constant('never' as const));
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ does: fc.constant('wait' as const), minutes: fc.integer({ min: 1, max: 20 }) }),
  fc.record({ does: fc.constantFrom('touch', 'rotate and touch late', 'rotate and save late') }),
  fc.record({ does: fc.constantFrom('save', 'update', 'principal', 'rotate'), keepsIdle: fc.boolean() }),
  fc.record({ does: fc.constantFrom('interval', 'absoluteTimeout'), minutes, keepsIdle: fc.boolean() }),
);

/** The time of a step: not before `from`, not after `to`. */
interface Span {
  readonly from: number;
  readonly to: number;
}

const keepsIdle = (taken: Step) => 'keepsIdle' in taken && taken.keepsIdle;
const endAfter = (time: number, seconds: number) => (seconds < 0 ? Infinity : time + seconds * 1000);

/** The expected times of a session. */
class Times {
  interval = 30 * 60;
  absoluteTimeout = -1;
  renewed: Span;

  constructor(private readonly creationTime: number) {
    this.renewed = { from: creationTime, to: creationTime };
  }

  get absoluteEnd(): number {
    return endAfter(this.creationTime, this.absoluteTimeout);
  }

  get end(): Span {
    const { renewed, interval, absoluteEnd } = this;
    const from = Math.min(endAfter(renewed.from, interval), absoluteEnd);
    return { from, to: Math.min(endAfter(renewed.to, interval), absoluteEnd) };
  }
}

/** Takes steps, and compares the session with its expected times after each. */
class Walk {
  #id: string;
  #principal: string;
  readonly #times: Times;
  #count = 0;

  private constructor(
    private readonly store: TimedStore,
    private readonly principal: string,
    session: Session,
  ) {
    this.#id = session.id;
    this.#principal = principal;
    this.#times = new Times(session.creationTime);
  }

  static async begin(store: TimedStore, principal: string): Promise<Walk> {
    const session = store.repository.createSession();
    session.principalName = principal;
    await session.save();
    return new Walk(store, principal, session);
  }

  async take(next: Step): Promise<void> {
    if (next.does === 'wait') await this.store.advance(next.minutes * MINUTE);
    else await this.#access(next);
    await this.#look();
  }

  /** Waits for its end, if it has one. */
  async finish(): Promise<void> {
    const { end } = this.#times;
    if (end.to === Infinity) return;
    // In Redis a key still exists in its last millisecond.
    await this.store.advance(Math.max(0, end.to + 1 - (await this.store.now())));
    expect(await this.store.repository.findById(this.#id)).toBeNull();
    expect(await this.store.repository.findByPrincipalName(this.#principal)).toEqual([]);
  }

  async #access(next: Exclude<Step, { does: 'wait' }>): Promise<void> {
    const { end } = this.#times;
    const from = await this.store.now();
    const session = await this.store.repository.findById(this.#id);
    const outcome = session ? await this.#perform(next, session) : 'gone';
    const to = await this.store.now();
    // An ended session stays ended, and a live one is found.
    if (outcome === 'gone') return expect(end.from).toBeLessThanOrEqual(to);
    expect(end.to).toBeGreaterThan(from);
    if (!keepsIdle(next)) this.#times.renewed = { from, to };
    if (next.does === 'principal') this.#principal = session!.principalName!;
    if (next.does === 'interval') this.#times.interval = session!.maxInactiveInterval;
    if (next.does === 'absoluteTimeout') this.#times.absoluteTimeout = session!.absoluteTimeout;
  }

  async #perform(next: Exclude<Step, { does: 'wait' }>, session: Session): Promise<SaveOutcome | TouchOutcome> {
    const { repository } = this.store;
    if (keepsIdle(next)) TrackedSession.of(session).keepIdle();
    const save = (each: Session) => {
      each.setAttribute('count', ++this.#count);
      return each.save();
    };
    switch (next.does) {
      case 'touch':
        return repository.touch(session);
      case 'save':
        return save(session);
      case 'update':
        return (await session.updateAttribute('count', () => ++this.#count)) === undefined ? 'gone' : 'saved';
      case 'principal':
        session.principalName = `${this.principal}, ${++this.#count}`;
        return session.save();
      case 'interval':
        session.maxInactiveInterval = next.minutes === 'never' ? -1 : next.minutes * 60;
        return save(session);
      case 'absoluteTimeout':
        session.absoluteTimeout = next.minutes === 'never' ? -1 : next.minutes * 60;
        return save(session);
    }
    const late = await repository.findById(this.#id);
    const newId = session.changeSessionId();
    const outcome = await session.save();
    if (outcome === 'gone' || !late) return 'gone';
    this.#id = newId;
    if (next.does === 'rotate and touch late') return repository.touch(late);
    return next.does === 'rotate and save late' ? save(late) : outcome;
  }

  async #look(): Promise<void> {
    const { store } = this;
    const { end, absoluteEnd } = this.#times;
    const now = await store.now();
    if (end.from > now)
      expect(await store.isAliveAt(this.#id, Math.min(end.from, Number.MAX_SAFE_INTEGER) - 1)).toBe(true);
    for (const over of [end.to, absoluteEnd]) {
      if (over !== Infinity) expect(await store.isAliveAt(this.#id, Math.max(over, now))).toBe(false);
    }
    await store.expectInOrder(this.#id, this.#principal);
    if (this.#principal !== this.principal)
      expect(await store.repository.findByPrincipalName(this.principal)).toEqual([]);
  }
}

describe.each([
  { name: 'Redis', open: () => TimedRedisStore.open(1), numRuns: 30 },
  { name: 'four partitions in Redis', open: () => TimedRedisStore.open(4), numRuns: 15 },
  { name: 'memory', open: async () => new TimedMapStore(), numRuns: 500 },
])('a session in $name', ({ open, numRuns }) => {
  let store: TimedStore;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  it('ends by its timeouts, never after the absolute one, under any sequence of touches, saves and rotations', async () => {
    let count = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 30 }), async (steps) => {
        const walk = await Walk.begin(store, `principal ${++count}`);
        for (const each of steps) await walk.take(each);
        await walk.finish();
      }),
      { numRuns },
    );
  });
});
