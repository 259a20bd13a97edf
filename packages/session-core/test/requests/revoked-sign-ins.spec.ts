import { Body, Controller, Get, Inject, Injectable, Post, UnauthorizedException } from '@nestjs/common';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import type { HttpAgent } from '@nest-session/testing';
import { Session, SessionContext, SessionGoneError, Sessions } from '../../src/index.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

/** Of the user; and the gate at which a check of it waits that has read it. */
let password: string;
let check: Gate | undefined;
let caught: unknown;
beforeEach(() => {
  password = 'old';
  check = undefined;
});

@Controller()
class AccountController {
  constructor(@Inject(Sessions) private readonly sessions: Sessions) {}

  @Post('cart')
  cart(@Session() session: Session) {
    session.setAttribute('cart', 1);
  }

  @Post('sign-in')
  async signIn(@Session() session: Session, @Body('password') given: string) {
    await this.#check(given);
    session.signIn('ann');
  }

  /** As a login that only says whose session it is. */
  @Post('assign')
  async assign(@Session() session: Session, @Body('password') given: string) {
    await this.#check(given);
    session.principalName = 'ann';
  }

  @Post('caught')
  async caught(@Session() session: Session, @Body('password') given: string) {
    await this.#check(given);
    session.signIn('ann');
    await session.save().catch((error: unknown) => (caught = error));
  }

  @Post('password')
  async change(@Session() session: Session, @Body('password') given: string) {
    password = given;
    session.signIn('ann');
    return { ended: await this.sessions.endAll('ann', { except: session }) };
  }

  @Post('end-others')
  async endOthers(@Session() session: Session) {
    return { ended: await this.sessions.endAll('ann', { except: session.id }) };
  }

  /** By a link that was sent to the user. */
  @Post('reset')
  async reset(@Session() session: Session, @Body('password') given: string) {
    password = given;
    const ended = await this.sessions.endAll('ann', { except: session });
    session.signIn('ann');
    return { ended };
  }

  /** The same, but nothing says which request it is. */
  @Post('reset-without-session')
  async resetWithout(@Session() session: Session) {
    const ended = await this.sessions.endAll('ann');
    session.signIn('ann');
    return { ended };
  }

  @Post('reset-and-sign-in-as-bob')
  async resetForBob(@Session() session: Session) {
    await this.sessions.endAll('ann', { except: session });
    await check?.pass();
    session.signIn('bob');
  }

  @Get('me')
  me(@Session() session: Session) {
    const { principalName = null } = session;
    return { name: principalName, cart: session.getAttribute('cart') ?? null };
  }

  async #check(given: string): Promise<void> {
    const isRight = given === password;
    await check?.pass();
    if (!isRight) throw new UnauthorizedException();
  }
}

const me = async (agent: HttpAgent) => (await agent.get('/me')).json<object>();
const signedIn = { name: 'ann', cart: null };
const nobody = { name: null, cart: null };

const CONFLICT = {
  statusCode: 409,
  message: 'The session has ended or changed in the meantime: repeat the request',
  error: 'Conflict',
  reason: 'session-gone',
};

describe.each(['express', 'fastify'] as const)('on %s, after all sessions of a user were ended', (platform) => {
  const start = (providers: (new (...args: never[]) => object)[] = []) =>
    startApp({ platform, controllers: [AccountController], providers });

  /** An agent whose sign-in waits, after the check of its password. */
  async function begin(agent: HttpAgent, path = '/sign-in') {
    check = new Gate();
    const [gate, response] = [check, agent.post(path, { password: 'old' })];
    await gate.reached();
    check = undefined;
    return async () => {
      gate.open();
      return response;
    };
  }

  it.each(['/sign-in', '/assign'])('a request that began before signs nobody in, by %s', async (path) => {
    const { agent, log } = await start();
    const [owner, known, unknown] = [agent(), agent(), agent()];
    await owner.post('/sign-in', { password: 'old' });
    await known.post('/cart');
    const finish = [await begin(known, path), await begin(unknown, path)];
    expect((await owner.post('/password', { password: 'new' })).json()).toEqual({ ended: 0 });
    for (const each of finish) {
      const response = await each();
      expect([response.status, response.json()]).toEqual([409, CONFLICT]);
      expect(response.setCookies).toEqual([]);
    }
    // The session of the visitor is as it was.
    expect([await me(owner), await me(known), await me(unknown)]).toEqual([signedIn, { name: null, cart: 1 }, nobody]);
    expect(log.lines).toEqual([]);
    // As the response says, the request is repeated: only now the password is checked again.
    expect((await known.post('/sign-in', { password: 'old' })).status).toBe(401);
    expect((await known.post('/sign-in', { password: 'new' })).status).toBe(201);
    expect(await me(known)).toEqual({ name: 'ann', cart: 1 });
  });

  it('also with the session in use, which stays', async () => {
    const { agent } = await start();
    const owner = agent();
    await owner.post('/sign-in', { password: 'old' });
    const finish = await begin(owner);
    await owner.post('/end-others');
    expect((await finish()).status).toBe(409);
    expect(await me(owner)).toEqual(signedIn);
  });

  it('the error says why, and what a request does that ends them itself', async () => {
    const { app, agent } = await start();
    const finish = await begin(agent(), '/caught');
    await app.get(Sessions).endAll('ann');
    // The handler has caught the error, but the sign-in stays unsaved.
    expect((await finish()).status).toBe(409);
    expect(caught).toBeInstanceOf(SessionGoneError);
    expect((caught as Error).message).toMatch(/^Nobody was signed in: .* as `except`$/);
  });

  it('no other user is refused', async () => {
    const { app, agent } = await start();
    const finish = await begin(agent());
    await app.get(Sessions).endAll('bob');
    expect((await finish()).status).toBe(201);
  });

  it('the request that has ended them signs the user in, by its session', async () => {
    const { agent } = await start();
    const [owner, known] = [agent(), agent()];
    await known.post('/cart');
    await owner.post('/sign-in', { password: 'old' });
    expect((await known.post('/reset', { password: 'new' })).json()).toEqual({ ended: 1 });
    expect((await agent().post('/reset', { password: 'newer' })).json()).toEqual({ ended: 1 });
    const last = agent();
    expect((await last.post('/reset', { password: 'newest' })).json()).toEqual({ ended: 1 });
    expect([await me(owner), await me(last)]).toEqual([nobody, signedIn]);
  });

  it('that request is no other one for another user', async () => {
    const { app, agent } = await start();
    const finish = await begin(agent(), '/reset-and-sign-in-as-bob');
    await app.get(Sessions).endAll('bob');
    expect((await finish()).status).toBe(409);
  });

  it('the same without its session, where the application knows the request; elsewhere the error says it', async () => {
    @Injectable()
    class Knowing {
      constructor(@Inject(SessionContext) readonly context: SessionContext) {}
    }
    const unknown = (await start()).agent();
    expect((await unknown.post('/reset-without-session')).status).toBe(409);
    const known = (await start([Knowing])).agent();
    expect((await known.post('/reset-without-session')).json()).toEqual({ ended: 0 });
    expect(await me(known)).toEqual(signedIn);
  });
});
