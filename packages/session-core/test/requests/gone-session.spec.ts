import type { ServerResponse } from 'node:http';
import {
  type CanActivate,
  ConflictException,
  Controller,
  type ExecutionContext,
  ForbiddenException,
  Get,
  Injectable,
  Param,
  Post,
  Res,
  UseGuards,
} from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, sessionOf } from '@nest-session/testing';
import { Session, SessionGoneError, SessionRepository } from '../../src/index.js';
import { closeApps, type SessionApp, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

const CONFLICT = {
  statusCode: 409,
  message: 'The session has ended or changed in the meantime: repeat the request',
  error: 'Conflict',
};

@Injectable()
class SigningInGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    context.switchToHttp().getRequest<{ session: Session }>().session.signIn('ann');
    throw new ForbiddenException();
  }
}

@Controller()
class GoneController {
  constructor(private readonly sessions: SessionRepository) {}

  @Post('start')
  start(@Session() session: Session) {
    session.setAttribute('a', 1);
  }

  @Post('rotate')
  rotate(@Session() session: Session) {
    session.changeSessionId();
  }

  @Post('login')
  login(@Session() session: Session) {
    session.signIn('ann');
    return { ok: true };
  }

  @Post('login-saved')
  async loginSaved(@Session() session: Session) {
    session.signIn('ann');
    await session.save();
    return { ok: true };
  }

  @Post('login-in-guard')
  @UseGuards(SigningInGuard)
  loginInGuard() {}

  @Post('login-by-response')
  loginByResponse(@Session() session: Session, @Res() response: ServerResponse & { raw?: ServerResponse }) {
    session.signIn('ann');
    (response.raw ?? response).end('ok');
  }

  @Post('login-of-its-own')
  async loginOfItsOwn(@Session() session: Session) {
    session.signIn('ann');
    const error: unknown = await session.save().catch((each: unknown) => each);
    return { isTyped: error instanceof SessionGoneError && error instanceof ConflictException, isGone: session.isGone };
  }

  /** Its session ends while the handler runs. */
  @Post('ended/:then')
  async ended(@Session() session: Session, @Param('then') then: string) {
    await this.sessions.deleteById(session.id);
    const before = session.isGone;
    if (then === 'set') session.setAttribute('a', 2);
    if (then === 'sign-in') session.signIn('ann');
    if (then === 'update-and-sign-in') {
      await session.updateAttribute('a', () => 2);
      session.signIn('ann');
    }
    if (then === 'sign-in-and-update') {
      session.signIn('ann');
      await session.updateAttribute('a', () => 2);
    }
    if (then === 'set') return { before, outcome: await session.save(), after: session.isGone };
    return { ok: true };
  }

  @Get('me')
  me(@Session() session: Session) {
    return { name: session.principalName ?? null, isGone: session.isGone };
  }
}

describe.each(['express', 'fastify'] as const)('on %s,', (platform) => {
  let app: SessionApp;
  beforeEach(async () => {
    app = await startApp({ platform, controllers: [GoneController] });
  });

  /** A client with the token of a session that has just got another one, as somebody may have planted it (L13). */
  async function withReplacedToken(): Promise<HttpAgent> {
    const attacker = app.agent();
    await attacker.post('/start');
    const victim = attacker.fork();
    await attacker.post('/rotate');
    return victim;
  }

  it.each(['login', 'login-saved', 'login-in-guard', 'login-by-response', 'start'])(
    'a token that was just replaced makes POST /%s a 409 without a cookie, never a silent 201',
    async (route) => {
      const victim = await withReplacedToken();
      const response = await victim.post(`/${route}`);
      expect(response.status).toBe(409);
      expect(response.json()).toEqual(CONFLICT);
      expect(response.setCookies).toEqual([]);
      expect((await victim.get('/me')).json()).toEqual({ name: null, isGone: false });
      expect(app.log.lines).toEqual([]);
    },
  );

  it('a sign-in that lost can be answered by the application', async () => {
    const victim = await withReplacedToken();
    const response = await victim.post('/login-of-its-own');
    expect([response.status, response.json()]).toEqual([201, { isTyped: true, isGone: true }]);
  });

  it('a token of a session that has ended does not stop a sign-in', async () => {
    const victim = app.agent();
    await victim.post('/start');
    await app.store.deleteById((await sessionOf(app.app, victim))!.id);
    expect((await victim.post('/login')).status).toBe(201);
    expect((await victim.get('/me')).json()).toEqual({ name: 'ann', isGone: false });
  });

  it.each(['sign-in', 'update-and-sign-in', 'sign-in-and-update'])(
    'a %s into a session that has ended meanwhile is a 409, and nobody is signed in',
    async (then) => {
      const client = app.agent();
      await client.post('/start');
      const response = await client.post(`/ended/${then}`);
      expect([response.status, response.json(), response.setCookies]).toEqual([409, CONFLICT, []]);
      expect((await client.get('/me')).json()).toEqual({ name: null, isGone: false });
    },
  );

  it('a save of an attribute that finds its session gone leaves the response, and isGone tells', async () => {
    const client = app.agent();
    await client.post('/start');
    const response = await client.post('/ended/set');
    expect(response.status).toBe(201);
    expect(response.json()).toEqual({ before: false, outcome: 'gone', after: true });
  });
});
