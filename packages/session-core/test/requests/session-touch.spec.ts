import { ManualClock } from '@nest-session/testing';
import { isTouchDue } from '../../src/http/session-touch.js';
import { MapSessionRepository } from '../../src/memory/map-session.repository.js';
import { TrackedSession } from '../../src/session/tracked-session.js';

const SECOND = 1000;
const NEVER = -1;
/** What a later sign-in waits for. */
const SIGN_IN = 100;

interface Timeouts {
  /** The option, in seconds. */
  readonly timeout: number;
  /** The idle timeout that the session has of its own. */
  readonly own: number;
  readonly absoluteTimeout: number;
  readonly isSignedIn: boolean;
}

/** Each with each. */
const ALL: Timeouts[] = [NEVER, 1800, 120].flatMap((timeout) =>
  [NEVER, 7200, 1800, 120, 60].flatMap((own) =>
    [NEVER, 86_400, 600].flatMap((absoluteTimeout) =>
      [false, true].map((isSignedIn) => ({ timeout, own, absoluteTimeout, isSignedIn })),
    ),
  ),
);

/** A stored session, and how to look at it so many seconds later. */
async function stored({ timeout, own, absoluteTimeout, isSignedIn }: Timeouts) {
  const clock = new ManualClock();
  const repository = new MapSessionRepository({ clock, timeout, absoluteTimeout });
  const session = repository.createSession();
  session.setAttribute('visits', 1);
  session.maxInactiveInterval = own;
  await session.save();
  if (isSignedIn) {
    clock.advance(Math.min(SIGN_IN, own < 0 ? SIGN_IN : own / 2) * SECOND);
    session.signIn('ada');
    session.maxInactiveInterval = own;
    await session.save();
  }
  const look = async (seconds: number) => {
    clock.advance(seconds * SECOND);
    const found = await repository.findById(session.id);
    return found && TrackedSession.of(found);
  };
  return { look, touch: (found: TrackedSession) => repository.touch(found) };
}

it.each(ALL)(
  'the time since the last renewal is known, with $timeout, $own, $absoluteTimeout, $isSignedIn',
  async (timeouts) => {
    const { look, touch } = await stored(timeouts);
    for (let renewal = 0; renewal < 3; renewal++) {
      for (let idle = 10; idle <= 50; idle += 10) {
        const found = await look(10);
        const isEndless = timeouts.own < 0 && timeouts.absoluteTimeout < 0;
        expect(found!.idleTime).toBe(isEndless ? undefined : idle * SECOND);
        if (idle === 50) await touch(found!);
      }
    }
  },
);

it.each(ALL)(
  'a session in use lives as long as it may, with $timeout, $own, $absoluteTimeout, $isSignedIn',
  async (timeouts) => {
    const { own, timeout, absoluteTimeout } = timeouts;
    const touchInterval = Math.min(60, timeout < 0 ? 60 : timeout / 30) * SECOND;
    const { look, touch } = await stored(timeouts);
    const step = own < 0 ? 60 : own / 15;
    let touches = 0;
    for (let use = 1; use <= 45; use++) {
      const found = await look(step);
      const isOver = absoluteTimeout > 0 && use * step >= absoluteTimeout;
      expect(found === null).toBe(isOver);
      if (!found) return;
      if (!isTouchDue(found, { timeout, touchInterval })) continue;
      touches++;
      await touch(found);
    }
    // A shorter timeout of its own may need more.
    if (own < 0 || (timeout >= 0 && own >= timeout))
      expect(touches).toBeLessThanOrEqual((45 * step * SECOND) / touchInterval);
  },
);
