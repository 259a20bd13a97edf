import { Controller, Delete, Get, Inject, Param, Post } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, signIn } from '@nest-session/testing';
import { Session, SessionRepository, Sessions } from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

@Controller()
class AccountController {
  constructor(@Inject(Sessions) private readonly sessions: Sessions) {}

  @Get('me')
  me(@Session() session: Session) {
    return { id: session.id, name: session.principalName };
  }

  @Delete('devices/:id')
  async end(@Session() session: Session, @Param('id') id: string) {
    return { ended: await this.sessions.end(id, { of: session.principalName! }) };
  }

  /** What an application does when a user has changed the password. */
  @Post('password')
  async changePassword(@Session() session: Session) {
    session.changeSessionId();
    return { ended: await this.sessions.endAll(session.principalName!, { except: session }) };
  }
}

async function start() {
  const store = new GatedRepository();
  const { app, agent } = await startApp({ store, controllers: [AccountController] });
  const signedIn = (principalName: string) => signIn(app, { principalName });
  return { app, store, agent, signedIn, sessions: app.get(Sessions) };
}

const me = async (agent: HttpAgent) => (await agent.get('/me')).json<{ id: string; name?: string }>();

async function idsOf(sessions: Sessions, name: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of sessions.ofPrincipal(name)) ids.push(id);
  return ids;
}

it('lists and counts the sessions of a principal, and no others', async () => {
  const { sessions, signedIn } = await start();
  const agents = [await signedIn('ada'), await signedIn('ada')];
  await signedIn('bob');
  const ids = await Promise.all(agents.map(async (agent) => (await me(agent)).id));
  expect((await idsOf(sessions, 'ada')).toSorted()).toEqual(ids.toSorted());
  expect([await sessions.count('ada'), await sessions.count('bob'), await sessions.count('carol')]).toEqual([2, 1, 0]);
});

it('ends a session of its principal, and not for a user who guesses or copies its id', async () => {
  const { sessions, signedIn, agent } = await start();
  const [ada, bob] = [await signedIn('ada'), await signedIn('bob')];
  const { id } = await me(ada);
  const end = async (client: HttpAgent) => (await client.request('DELETE', `/devices/${id}`)).json();
  // A visitor has no principal.
  for (const other of [bob, agent()]) expect(await end(other)).toEqual({ ended: false });
  expect(await me(ada)).toMatchObject({ name: 'ada' });
  expect(await sessions.end(id, { of: 'ada' })).toBe(true);
  expect(await sessions.end(id, { of: 'ada' })).toBe(false);
  expect((await me(ada)).name).toBeUndefined();
  expect(await sessions.end((await me(bob)).id)).toBe(true);
  expect((await me(bob)).name).toBeUndefined();
});

it('ends all sessions of a principal but the one in use, also when that is rotated in the same request', async () => {
  const { sessions, signedIn } = await start();
  const [phone, laptop, tablet, bobs] = await Promise.all(['ada', 'ada', 'ada', 'bob'].map(signedIn));
  const before = (await me(phone!)).id;
  expect((await phone!.post('/password')).json()).toEqual({ ended: 2 });
  const after = await me(phone!);
  expect(after).toEqual({ id: expect.not.stringMatching(before), name: 'ada' });
  expect(await idsOf(sessions, 'ada')).toEqual([after.id]);
  for (const agent of [laptop!, tablet!]) expect((await me(agent)).name).toBeUndefined();
  expect((await me(bobs!)).name).toBe('bob');
  expect(await sessions.endAll('ada', { except: after.id })).toBe(0);
  expect(await sessions.endAll('ada')).toBe(1);
});

it('fails when the store does', async () => {
  const { store, sessions, signedIn } = await start();
  await signedIn('ada');
  store.break('delete');
  await expect(sessions.endAll('ada')).rejects.toThrow('The test has broken the store');
  await expect(sessions.end('x'.repeat(43), { of: 'ada' })).rejects.toThrow('The test has broken the store');
});

it('refuses arguments of another type by a TypeError that says which, and ends nothing', async () => {
  const { signedIn, sessions } = await start();
  await signedIn('ada');
  const refused = async (call: () => unknown, message: RegExp) => {
    const error = await Promise.resolve()
      .then(call)
      .then(
        () => 'no error',
        (each: unknown) => each,
      );
    expect([error, (error as Error).message]).toEqual([expect.any(TypeError), expect.stringMatching(message)]);
  };
  for (const name of [undefined, null, 5, {}, ['ada']] as never[]) {
    const message = /^The name of a principal must be a string, not (?:undefined|null|number|object|array)$/;
    await refused(() => sessions.endAll(name), message);
    await refused(() => sessions.count(name), message);
    await refused(() => sessions.ofPrincipal(name)[Symbol.asyncIterator]().next(), message);
    if (name !== undefined) await refused(() => sessions.end('x'.repeat(43), { of: name }), message);
    await refused(() => sessions.end(name), /^The id of a session must be a string, not /);
    await refused(() => sessions.load(name), /^Not a request/);
  }
  for (const options of [null, 'x', []] as never[]) {
    const message = /^The second argument must be an object, not /;
    await refused(() => sessions.endAll('ada', options), message);
    await refused(() => sessions.end('x'.repeat(43), options), message);
  }
  for (const except of [null, 5, {}, ['x']] as never[])
    await refused(() => sessions.endAll('ada', { except }), /^(?:`except`|The id of `except`) must be /);
  expect(await sessions.count('ada')).toBe(1);
});

it('says that a store without indexes cannot find the sessions of a principal', async () => {
  class Plain extends SessionRepository {
    constructor() {
      super();
    }

    protected load() {
      return Promise.resolve([]);
    }

    protected write() {
      return Promise.resolve({ outcome: 'gone' } as const);
    }
  }
  const { app } = await startApp({ store: new Plain() as unknown as GatedRepository });
  const sessions = app.get(Sessions);
  expect(() => sessions.ofPrincipal('ada')).toThrow('must be an IndexedSessionRepository');
  await expect(sessions.count('ada')).rejects.toThrow(TypeError);
  await expect(sessions.endAll('ada')).rejects.toThrow(TypeError);
  await expect(sessions.end('x', { of: 'ada' })).rejects.toThrow(TypeError);
  expect(await sessions.end('x')).toBe(false);
});
