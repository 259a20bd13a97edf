import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { Session, SessionStateError } from '../../src/index.js';
import { type RawReply, rawOf } from '../support/raw.response.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

const CHANGES: Readonly<Record<string, (session: Session) => unknown>> = {
  signIn: (session) => session.signIn('ann'),
  changeSessionId: (session) => session.changeSessionId(),
  principalName: (session) => (session.principalName = 'ann'),
};

/** The outcome of what a handler did after it had responded. */
let late: Promise<unknown>;

async function change(session: Session, what: string): Promise<unknown> {
  CHANGES[what]!(session);
  return session.save();
}

@Controller()
class LateController {
  @Post('start')
  start(@Session() session: Session) {
    session.setAttribute('step', 1);
  }

  /** Its response waits for the save of the attribute. */
  @Post('late/:what')
  late(@Session() session: Session, @Param('what') what: string, @Res() reply: RawReply) {
    session.setAttribute('step', 2);
    rawOf(reply).end('done');
    late = change(session, what).catch((error: unknown) => error);
  }

  @Get('me')
  me(@Session() session: Session) {
    return { step: session.getAttribute('step'), name: session.principalName ?? null };
  }
}

describe.each(['express', 'fastify'] as const)('on %s, a handler whose response waits for the save', (platform) => {
  async function start() {
    const { agent } = await startApp({ platform, controllers: [LateController] });
    const client = agent();
    await client.post('/start');
    return client;
  }

  it.each(['signIn', 'changeSessionId'])('cannot change the session id any more: %s', async (what) => {
    const client = await start();
    expect((await client.post(`/late/${what}`)).text).toBe('done');
    expect(await late).toBeInstanceOf(SessionStateError);
    expect((await client.get('/me')).json()).toEqual({ step: 2, name: null });
  });

  it('can assign the principal, under the same id', async () => {
    const client = await start();
    expect((await client.post('/late/principalName')).text).toBe('done');
    expect(await late).toBe('saved');
    expect((await client.get('/me')).json()).toEqual({ step: 2, name: 'ann' });
  });
});
