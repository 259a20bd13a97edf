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
  ])('open the session of the live token: %s', async (_, tokens) => {
    expect((await get('/name', tokens())).json()).toEqual({ name: 'ann' });
  });

  it('open nothing beyond the fifth token, and no more are looked up', async () => {
    const tokens = [...Array.from({ length: 300 }, unknown), live];
    expect((await get('/name', tokens)).json()).toEqual({});
    expect(app.store.calls).toEqual(['load']);
    expect((await get('/name', [...tokens.slice(0, 5), live])).json()).toEqual({});
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

function tokenIn({ setCookies }: { readonly setCookies: readonly string[] }): string {
  return /^SESSION=([\w-]{43});/.exec(setCookies[0] ?? '')![1]!;
}
