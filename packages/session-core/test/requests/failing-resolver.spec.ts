import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, Get, Post, StreamableFile } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { Session, SessionIdResolver, type SessionToken, sessionTokenOf } from '../../src/index.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();

/** Breaks the contract of resolvers, which must not throw. */
class FailingResolver extends SessionIdResolver {
  readonly headers = ['X-Token'];

  constructor(private readonly fail: () => void) {
    super();
  }

  resolve({ headers }: IncomingMessage): SessionToken[] {
    const token = sessionTokenOf(headers['x-token']);
    return token ? [token] : [];
  }

  send(_request: IncomingMessage, response: ServerResponse, token: SessionToken): void {
    response.setHeader('X-Token', token.reveal());
    return this.fail();
  }

  expire(): void {
    return this.fail();
  }
}

@Controller()
class TestController {
  @Post('start')
  start(@Session() session: Session) {
    session.setAttribute('started', true);
    return { started: true };
  }

  @Get('file')
  file(@Session() session: Session) {
    session.setAttribute('started', true);
    return new StreamableFile(Buffer.from('all of it'));
  }

  @Get('end')
  end(@Session() session: Session) {
    session.invalidate();
    return { ended: true };
  }

  @Get('session')
  show(@Session() session: Session) {
    return { isNew: session.isNew };
  }
}

describe.each(['express', 'fastify'] as const)('on %s, a resolver of the application', (platform) => {
  afterEach(closeApps);

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('No tenant');
      },
    ],
    ['returns a promise that is rejected', () => Promise.reject(new Error('No tenant'))],
  ])('that %s is logged, and this response and the next ones are sent', async (_, fail) => {
    const sessionIdResolver = new FailingResolver(fail);
    const { agent, log } = await startApp({ platform, controllers: [TestController], session: { sessionIdResolver } });
    const browser = agent();
    const started = await browser.post('/start');
    expect([started.status, started.json()]).toEqual([201, { started: true }]);
    expect(started.headers['cache-control']).toBe('no-store');
    expect((await browser.get('/file')).text).toBe('all of it');
    const token = String(started.headers['x-token']);
    const headers = { 'x-token': token };
    expect((await browser.get('/end', { headers })).json()).toEqual({ ended: true });
    expect((await browser.get('/session', { headers })).json()).toEqual({ isNew: true });
    expect(log.lines).toEqual(Array(3).fill(expect.stringMatching(/^error The SessionIdResolver failed.*No tenant/)));
    expect(log.lines.join()).not.toContain(token);
  });
});
