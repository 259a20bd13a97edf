import { IndexedSessionRepository, Sessions, SessionStateError } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import type { ExpressSessionModuleOptions } from '../../src/index.js';
import { closeApps, startApp } from '../support/express-session.app.js';
import { logInByPassport } from '../support/passport-login.js';
import { request, runIn, StepController, type Step } from '../support/step.controller.js';

LeakGuard.install();
afterEach(closeApps);

class ObjectId {
  readonly id = Buffer.from('not the text');

  constructor(private readonly hex: string) {}

  toJSON() {
    return this.hex;
  }
}

class User {
  readonly since = new Date(0);

  constructor(
    readonly id: number,
    readonly boss?: User,
  ) {}
}

/** Its `id` is a getter, which JSON does not have. */
class Model {
  readonly _id = new ObjectId('507f');

  get id() {
    return 'another';
  }
}

async function start(
  principal?: ExpressSessionModuleOptions['principal'],
  platform: 'express' | 'fastify' = 'express',
) {
  const { app, agent } = await startApp({
    platform,
    controllers: [StepController],
    express: principal === undefined ? {} : { principal },
  });
  const client = agent();
  const repository = app.get(IndexedSessionRepository, { strict: false });
  const sessions = app.get(Sessions, { strict: false });
  const run = (step: Step<unknown>) => runIn(client, step);
  return { client, run, sessions, count: async (name: string) => (await repository.findByPrincipalName(name)).length };
}

describe('the principal', () => {
  it('is by default undefined, unless the application sets it', async () => {
    const { run, count } = await start();
    await run(({ session }) => {
      session.user = 'ann';
      session.signIn('bob');
    });
    await run(({ session }) => void (session.other = 1));
    expect([await count('ann'), await count('bob')]).toEqual([0, 1]);
  });

  it.each<[string, unknown, string]>([
    ['a string', 'ann', 'ann'],
    ['a number', 7, '7'],
    ['zero', 0, '0'],
    ['an ObjectId', new ObjectId('507f'), '507f'],
    ['a Buffer', Buffer.from([1, 254]), '01fe'],
    ['bytes', new Uint8Array([1, 254]), '01fe'],
    ['an object with an id', { id: 7, name: 'ann' }, '7'],
    ['a document of MongoDB', { _id: new ObjectId('507f'), name: 'ann' }, '507f'],
    ['claims of OpenID Connect', { sub: 'ann', name: 'Ann' }, 'ann'],
    ['an entity', new User(7, new User(8)), '7'],
    ['an entity whose getter is no data', new Model(), '507f'],
  ])('of Passport is %s', async (_, user, name) => {
    const { run, count } = await start();
    await run((request) => logInByPassport(request, user));
    expect(await count(name)).toBe(1);
    expect(await run(({ session }) => session.principalName)).toBe(name);
    await run(({ session }) => void (session.other = session.passport.user));
    expect(await count(name)).toBe(1);
  });

  it('is what the option makes of the session', async () => {
    const { run, count } = await start((session) => session['account'] as string);
    await run(({ session }) => void (session.account = 'ann'));
    expect(await count('ann')).toBe(1);
    await run(({ session }) => void (session.account = 'bob'));
    expect([await count('ann'), await count('bob')]).toEqual([0, 1]);
    await run(({ session }) => delete session.account);
    expect(await count('bob')).toBe(0);
  });

  it('is not authenticated when the option makes another one of a session in which somebody has signed in', async () => {
    const { run } = await start((session) => session['account'] as string);
    const authentication: Step<unknown> = ({ session }) => [
      session.principalName,
      session.authenticatedAt !== undefined,
    ];
    await run(({ session }) => {
      session.signIn('ann');
      session.account = 'ann';
    });
    await run(({ session }) => void (session.other = 1));
    expect(await run(authentication)).toEqual(['ann', true]);
    await run(({ session }) => void (session.account = 'bob'));
    expect(await run(authentication)).toEqual(['bob', false]);
  });

  it('keeps the time of a sign-in whose name the option finds, also of another user than before', async () => {
    const { run, count } = await start((session) => session['account'] as string);
    for (const name of ['ann', 'bob', 'bob']) {
      await run(({ session }) => {
        session.signIn(name);
        session.account = name;
      });
      expect(await run(({ session }) => [session.principalName, typeof session.authenticatedAt])).toEqual([
        name,
        'number',
      ]);
    }
    expect([await count('ann'), await count('bob')]).toEqual([0, 1]);
  });

  it.each<[who: string, account: unknown]>([
    ['nobody', undefined],
    ['somebody else', 'bob'],
  ])('makes a sign-in fail whose name the option does not find, but %s', async (_, account) => {
    const { client, run, count } = await start((session) => session['account'] as string);
    await run(({ session }) => void (session.cart = 1));
    const response = await request(client, ({ session }) => {
      session.signIn('ann');
      session.account = account;
    });
    expect([response.status, response.setCookies]).toEqual([500, []]);
    const message = await run(async ({ session }) => {
      session.signIn('ann');
      session.account = account;
      const error: unknown = await session.save().catch((thrown: unknown) => thrown);
      session.account = 'ann';
      return error instanceof SessionStateError && error.message;
    });
    expect(message).toMatch(/`principal`.*does not find the name that signIn\(name\) got: .* assign the property/);
    expect([await count('ann'), await count('bob')]).toEqual([1, 0]);
    // Later, the function decides again.
    await run(({ session }) => void delete session.account);
    expect(await run(({ session }) => [session.principalName ?? null, session.cart])).toEqual([null, 1]);
  });

  it('is left to the application with `principal: false`', async () => {
    const { run, count } = await start(false);
    await run((request) => logInByPassport(request, 'ann'));
    expect(await count('ann')).toBe(0);
  });
});

it('a user who signs in by signIn() is the principal, under another id, until signOut()', async () => {
  const { client, run, count } = await start();
  await run(({ session }) => void (session.cart = ['apple']));
  const before = client.cookie('SESSION');
  expect(await run(({ session }) => session.signIn('ann'))).toBeNull();
  expect(client.cookie('SESSION')).not.toBe(before);
  const read = ({ session }: { session: any }) => [session.cart, session.authenticatedAt, session.principalName];
  expect(await run(read)).toEqual([['apple'], expect.any(Number), 'ann']);
  expect(await count('ann')).toBe(1);
  await run(({ session }) => session.signOut());
  expect(await count('ann')).toBe(0);
});

it('a user whom the properties sign in or out is under another id than before', async () => {
  const { client, run, count } = await start((session) => session['account'] as string);
  await run(({ session }) => void (session.cart = 1));
  for (const account of ['ann', 'bob', undefined]) {
    const before = client.cookie('SESSION')!;
    await run(({ session }) => void (session.account = account));
    expect(await run(({ session }) => [session.cart, session.account ?? null])).toEqual([1, account ?? null]);
    expect(await count(account ?? 'bob')).toBe(account ? 1 : 0);
    const after = client.cookie('SESSION')!;
    client.setCookie(`SESSION=${before}`);
    expect(await run(({ session }) => session.account ?? null)).toBeNull();
    client.setCookie(`SESSION=${after}`);
  }
});

describe.each(['express', 'fastify'] as const)('Sessions on %s', (platform) => {
  it('keeps the session that a request excepts, also when it is rotated in the same request', async () => {
    const { run, sessions } = await start(undefined, platform);
    await run(({ session }) => session.signIn('ann'));
    await run(async ({ session }) => {
      session.signIn('ann');
      return sessions.endAll('ann', { except: session });
    });
    expect(await run(({ session }) => session.principalName as string)).toBe('ann');
  });
});

describe.each(['express', 'fastify'] as const)('updateAttribute() on %s', (platform) => {
  const refusal = (name: string) =>
    `TypeError: req.session.updateAttribute("${name}") would change the principal of the session: call req.session.regenerate()`;

  it.each([
    ['another user', () => ({ user: 'bob' })],
    ['another user in the same object', (passport: { user: string }) => Object.assign(passport, { user: 'bob' })],
    ['nobody', () => undefined],
  ])('refuses to make %s the principal, because it stores the attribute alone', async (_, update) => {
    const { run, count } = await start(undefined, platform);
    await run((request) => logInByPassport(request, 'ann'));
    await expect(run(({ session }) => session.updateAttribute('passport', update))).rejects.toThrow(
      refusal('passport'),
    );
    expect(await run(({ session }) => [session.passport.user, session.principalName])).toEqual(['ann', 'ann']);
    expect([await count('ann'), await count('bob')]).toEqual([1, 0]);
  });

  it('refuses to sign in a visitor', async () => {
    const { run } = await start(undefined, platform);
    const signIn: Step<unknown> = ({ session }) => session.updateAttribute('passport', () => ({ user: 'ann' }));
    await expect(run(signIn)).rejects.toThrow(refusal('passport'));
    await run(({ session }) => void (session.cart = 1));
    await expect(run(signIn)).rejects.toThrow(refusal('passport'));
  });

  it('refuses what would change the result of the option, whatever that reads', async () => {
    const { run } = await start((session) => ({ ...session })['account'] as string, platform);
    await run(({ session }) => void (session.account = 'ann'));
    await expect(run(({ session }) => session.updateAttribute('account', () => 'bob'))).rejects.toThrow(
      refusal('account'),
    );
    expect(await run(({ session }) => session.updateAttribute('n', () => 1))).toBe(1);
  });

  it('changes all that leaves the principal as it is', async () => {
    const { run, count } = await start(undefined, platform);
    await run((request) => logInByPassport(request, 'ann'));
    await run(({ session }) => session.updateAttribute('passport', (passport: object) => ({ ...passport, seen: 1 })));
    expect(await run(({ session }) => [session.passport, session.principalName])).toEqual([
      { user: 'ann', seen: 1 },
      'ann',
    ]);
    expect(await count('ann')).toBe(1);
  });
});

describe('the user of Passport', () => {
  it('is gone after the sign-in of another user that keeps nothing, and that user is signed in', async () => {
    const { run, count } = await start();
    await run((request) => logInByPassport(request, 'ann'));
    await run(({ session }) => session.signIn('bob', { keep: [] }));
    expect(await run(({ session }) => [session.principalName, 'passport' in session])).toEqual(['bob', false]);
    await run(({ session }) => void (session.other = 1));
    expect([await count('ann'), await count('bob')]).toEqual([0, 1]);
  });

  it('is the principal until it is removed', async () => {
    const { run, count } = await start();
    await run((request) => logInByPassport(request, 'ann'));
    await run(({ session }) => void delete session.passport.user);
    expect(await count('ann')).toBe(0);
    await run((request) => logInByPassport(request, 'bob'));
    expect(await count('bob')).toBe(1);
    await run(({ session }) => void delete session.passport);
    expect(await count('bob')).toBe(0);
  });
});
