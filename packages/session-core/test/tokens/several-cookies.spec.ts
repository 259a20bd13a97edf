import { LeakGuard } from '@nest-session/test-infrastructure';
import { PRINCIPAL_ATTRIBUTE } from '../../src/session/attribute-names.js';
import { generateSessionKey } from '../../src/internal.js';
import { AccountController } from '../support/account.routes.js';
import { replaceMethods } from '../support/gated.repository.js';
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
    ['five', () => several(5), [5]],
    ['six that open nothing', () => several(6), [6]],
    ['some behind the session of a principal', (own) => [own, ...several(9)], [10, 1]],
    ['one behind the sessions of visitors', (own) => [live, ...several(4), own], [6, 1]],
    ['a header full', () => several(300), [64]],
  ])('are loaded in one round trip, or asked about where there are more than five: %s', async (_, tokens, expected) => {
    const given = tokens(tokenIn(await app.agent().get('/signin')));
    app.store.lookUps.splice(0);
    await get('/who', given);
    expect(app.store.lookUps.map((ids) => ids.length)).toEqual(expected);
  });

  it('open the next session when the one that counts ends between the two round trips', async () => {
    const ended = tokenIn(await app.agent().get('/signin'));
    const { store } = app;
    replaceMethods(store, ({ load }) => ({
      load: async (ids) => {
        const found = await load(ids);
        for (const { id, attributes } of found)
          if (ids.length > 1 && [...attributes].some(([name]) => name === PRINCIPAL_ATTRIBUTE))
            await store.deleteById(id);
        return found;
      },
    }));
    expect((await get('/name', [...several(5), ended, live])).json()).toEqual({ name: 'ann' });
    expect((await get('/who', [ended])).json()).toEqual({});
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
