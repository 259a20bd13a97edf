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

  /** Node.js refuses a reason phrase with a character that Latin-1 does not have. */
  @Post('refused')
  refused(@Session() session: Session, @Res() reply: RawReply) {
    session.signIn('ann');
    rawOf(reply).statusMessage = 'Done – at last';
    rawOf(reply).end('done');
  }

  @Get('me')
  me(@Session() session: Session) {
    return { step: session.getAttribute('step'), name: session.principalName ?? null };
  }
}

describe.each(['express', 'fastify'] as const)('on %s, a handler whose response waits for the save', (platform) => {
  async function start() {
    const { agent, log } = await startApp({ platform, controllers: [LateController] });
    const client = agent();
    await client.post('/start');
    return { client, log };
  }

  it.each(['signIn', 'changeSessionId', 'principalName'])('cannot change the session id any more: %s', async (what) => {
    const { client } = await start();
    expect((await client.post(`/late/${what}`)).text).toBe('done');
    expect(await late).toBeInstanceOf(SessionStateError);
    expect((await client.get('/me')).json()).toEqual({ step: 2, name: null });
  });

  it('gives the client its new token although Node.js refuses the response', async () => {
    const { client, log } = await start();
    const response = await client.post('/refused');
    expect([response.status, response.setCookies]).toEqual([500, [expect.stringContaining('SESSION=')]]);
    expect(log.matching(/^error Node\.js refused to send a response/)).toHaveLength(1);
    expect(log.matching(/could not be saved/)).toEqual([]);
    expect((await client.get('/me')).json()).toEqual({ step: 1, name: 'ann' });
  });
});
