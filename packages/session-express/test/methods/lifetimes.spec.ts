import { jest } from '@jest/globals';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type CookieDescription, SessionCookie } from '../../src/bag/session-cookie.js';
import { closeApps, type ExpressSessionApp, startApp } from '../support/express-session.app.js';
import { runIn, StepController, type StepRequest } from '../support/step.controller.js';

LeakGuard.install();
afterAll(closeApps);

const HOUR = 3_600_000;
const TIMEOUT = 1800;

/** What a request does with its session, and what becomes of the lifetime. */
interface Action {
  readonly name: string;
  readonly act: (request: StepRequest, first: any) => unknown;
  readonly lifetime: (before: number | null, isReplaced: boolean) => number | null;
}

const set = (maxAge: number | null): Action => ({
  name: `set ${maxAge}`,
  act: ({ session }) => (session.cookie.maxAge = maxAge),
  lifetime: () => maxAge,
});
const save: Action = { name: 'save', act: ({ session }) => session.save(), lifetime: (before) => before };
const regenerate: Action = {
  name: 'regenerate',
  act: async (request) => {
    await request.session.regenerate();
    request.session.a = 2;
  },
  lifetime: () => null,
};
/** Through the object that the request had at its beginning. */
const setFirst: Action = {
  name: 'set the first',
  act: (_, first) => (first.cookie.maxAge = 3 * HOUR),
  lifetime: (before, isReplaced) => (isReplaced ? before : 3 * HOUR),
};

const SEQUENCES = [set(HOUR), set(null)].flatMap((one) =>
  [save, regenerate, set(2 * HOUR)].flatMap((two) =>
    [set(2 * HOUR), set(null), setFirst, regenerate].map((three) => [one, two, three]),
  ),
);

let app: ExpressSessionApp;
beforeAll(async () => {
  app = await startApp({ controllers: [StepController] });
});

it.each(['new', 'stored'])(
  'of each three changes of a %s session, the last lifetime is that of the session',
  async (age) => {
    for (const sequence of SEQUENCES) {
      const agent = app.agent();
      if (age === 'stored') await runIn(agent, ({ session }) => void (session.a = 1));
      await runIn(agent, async (request) => {
        const first = request.session;
        first.a = 1;
        for (const { act } of sequence) await act(request, first);
      });
      let lifetime: number | null = null;
      let isReplaced = false;
      for (const action of sequence) {
        lifetime = action.lifetime(lifetime, isReplaced);
        isReplaced ||= action === regenerate;
      }
      const seen = await runIn(agent, ({ session }) => [session.cookie.originalMaxAge, session.maxInactiveInterval]);
      const names = sequence.map(({ name }) => name);
      expect([...names, ...seen]).toEqual([...names, lifetime, lifetime === null ? TIMEOUT : lifetime / 1000]);
    }
  },
);

it.each([
  ['a user', 'ann', 1800],
  ['a visitor', undefined, 600],
])('without a lifetime again, the session of %s has the idle timeout of such', async (_, principalName, seconds) => {
  const { agent } = await startApp({ controllers: [StepController], session: { anonymousTimeout: '10m' } });
  const client = agent();
  await runIn(client, ({ session }) => {
    session.a = 1;
    if (principalName !== undefined) session.signIn(principalName);
  });
  for (let again = 0; again < 2; again++) {
    await runIn(client, ({ session }) => void (session.cookie.maxAge = HOUR));
    expect(await runIn(client, ({ session }) => session.maxInactiveInterval)).toBe(3600);
    await runIn(client, ({ session }) => void (session.cookie.maxAge = null));
    expect(await runIn(client, ({ session }) => session.maxInactiveInterval)).toBe(seconds);
  }
});

it.each(['new', 'stored'])(
  'a sign-in decides anew how long a %s session lives, and so does what follows it',
  async (age) => {
    const { agent } = await startApp({ controllers: [StepController], session: { cookie: { rememberMe: '30d' } } });
    const lifetimeAfter = async (act: (session: any) => unknown) => {
      const client = agent();
      if (age === 'stored') await runIn(client, ({ session }) => void (session.a = 1));
      await runIn(client, ({ session }) => act(session));
      return runIn(client, ({ session }) => [session.cookie.originalMaxAge, session.maxInactiveInterval]);
    };
    const before = (options?: object) => (session: any) => {
      session.cookie.maxAge = HOUR;
      session.signIn('ann', options);
    };
    expect(await lifetimeAfter(before())).toEqual([null, TIMEOUT]);
    expect(await lifetimeAfter(before({ remember: true }))).toEqual([720 * HOUR, 2_592_000]);
    const after = (session: any) => {
      before({ remember: true })(session);
      session.cookie.maxAge = 2 * HOUR;
    };
    expect(await lifetimeAfter(after)).toEqual([2 * HOUR, 7200]);
  },
);

it('touch() and resetMaxAge() move the end of the cookie, each time', () => {
  jest.useFakeTimers();
  try {
    const changes: unknown[] = [];
    const cookie = new SessionCookie(HOUR, {} as CookieDescription, (maxAge) => changes.push(maxAge));
    for (let access = 0; access < 3; access++) {
      const end = cookie.expires!.getTime();
      jest.advanceTimersByTime(HOUR / 2);
      expect([cookie.maxAge, cookie.originalMaxAge]).toEqual([HOUR / 2, HOUR]);
      cookie.reset();
      expect([cookie.maxAge, cookie.expires!.getTime()]).toEqual([HOUR, end + HOUR / 2]);
    }
    expect(changes).toEqual([]);
  } finally {
    jest.useRealTimers();
  }
});
