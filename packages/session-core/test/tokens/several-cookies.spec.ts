import { LeakGuard } from '@nest-session/test-infrastructure';
import { generateSessionKey } from '../../src/store.js';
import { AccountController } from '../support/account.routes.js';
import { closeApps, type SessionApp, startApp } from '../support/session.app.js';

LeakGuard.install();

describe.each(['express', 'fastify'] as const)('several cookies of one name, on %s,', (platform) => {
  let app: SessionApp;
  let live: string;
  beforeEach(async () => {
    app = await startApp({ platform, controllers: [AccountController] });
    live = tokenIn(await app.agent().get('/start'));
    app.store.calls.splice(0);
  });
  afterEach(closeApps);

  function get(path: string, tokens: readonly string[]) {
    return app.agent().get(path, { headers: { cookie: tokens.map((token) => `SESSION=${token}`).join('; ') } });
  }

  it.each([
    ['first', () => [live, unknown()]],
    ['last', () => ['', 'malformed', unknown(), unknown(), live]],
    ['the fifth', () => [unknown(), unknown(), unknown(), unknown(), live, unknown()]],
    ['twice', () => [live, live]],
    ['the sixth, behind malformed ones', () => ['', 'malformed', '=', live.slice(1), `${live}A`, live]],
    [
      'the sixth, behind one that is repeated',
      () => {
        const repeated = unknown();
        return [repeated, repeated, repeated, repeated, repeated, live];
      },
    ],
    ['the sixth, and the fifth token', () => [unknown(), unknown(), 'malformed', unknown(), unknown(), live]],
    ['the 64th', () => [...several(63), live]],
  ])('open the session of the live token: %s', async (_, tokens) => {
    expect((await get('/name', tokens())).json()).toEqual({ name: 'ann' });
  });

  it.each([5, 6, 40, 63])(
    'lock nobody out who is signed in, however %d were planted before the own one',
    async (count) => {
      const visitor = tokenIn(await app.agent().get('/start'));
      const own = tokenIn(await app.agent().get('/signin'));
      const tokens = several(count);
      expect((await get('/who', [...tokens, own])).json()).toEqual({ who: 'ann' });
      // Of somebody who has no session but planted some, which are alive.
      const planted = [visitor, ...tokens.slice(1)];
      expect((await get('/who', [...planted, own])).json()).toEqual({ who: 'ann' });
      expect((await get('/logout', [...planted, own])).setCookies).toHaveLength(1);
      expect((await get('/who', [...planted, own])).json()).toEqual({});
    },
  );

  it.each<[string, (own: string) => string[], number[]]>([
    ['of five tokens', () => several(5), [5]],
    ['of which the fifth opens the session of a principal', (own) => [...several(4), own, ...several(9)], [5]],
    ['of which the first five open nothing', () => several(6), [5, 1]],
    ['of which the first five open the sessions of visitors', (own) => [live, ...several(4), own], [5, 1]],
    ['that fill a header', () => several(300), [5, 59]],
  ])('are looked up in one round trip, and in a second one behind five in vain: %s', async (_, tokens, expected) => {
    const given = tokens(tokenIn(await app.agent().get('/signin')));
    app.store.lookUps.splice(0);
    await get('/who', given);
    expect(app.store.lookUps.map((ids) => ids.length)).toEqual(expected);
  });

  it('open nothing beyond the 64th', async () => {
    const tokens = several(63);
    expect((await get('/name', [...tokens, live])).json()).toEqual({ name: 'ann' });
    expect((await get('/name', [...tokens, unknown(), live])).json()).toEqual({});
  });

  it('open the first session when several are alive', async () => {
    const other = tokenIn(await app.agent().get('/start'));
    expect((await get('/logout', [other, live])).setCookies).toHaveLength(1);
    expect((await get('/name', [other])).json()).toEqual({});
    expect((await get('/name', [live])).json()).toEqual({ name: 'ann' });
  });

  it('rotate and end the session that they open', async () => {
    const rotated = tokenIn(await get('/login', [unknown(), live]));
    expect((await get('/name', [live])).json()).toEqual({});
    expect((await get('/logout', [unknown(), rotated])).setCookies).toEqual([
      'SESSION=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax',
    ]);
    expect((await get('/name', [rotated])).json()).toEqual({});
  });

  it('lead to 503 when the store fails for one of them', async () => {
    app.store.break('load');
    expect((await get('/name', [unknown(), live])).status).toBe(503);
  });
});

function unknown(): string {
  return generateSessionKey().token.reveal();
}

function several(count: number): string[] {
  return Array.from({ length: count }, unknown);
}

function tokenIn({ setCookies }: { readonly setCookies: readonly string[] }): string {
  return /^SESSION=([\w-]{43});/.exec(setCookies[0] ?? '')![1]!;
}
