import { PassThrough } from 'node:stream';
import { Controller, Post } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { pinoHttp } from 'pino-http';
import { Session } from '../../src/index.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

@Controller()
class TestController {
  @Post('visit')
  visit(@Session() session: Session) {
    session.setAttribute('visited', true);
    return { id: session.id };
  }
}

/** What pino logs of two requests with these options, and the token of their session. */
async function logOf(options: object): Promise<{ log: string; token: string; id: string }> {
  const stream = new PassThrough();
  const app = await startApp({
    controllers: [TestController],
    configure: (nest) => nest.use(pinoHttp(options, stream)),
  });
  const browser = app.agent();
  await browser.post('/visit');
  const { id } = (await browser.post('/visit')).json<{ id: string }>();
  await app.app.close();
  return { log: String(stream.read()), token: browser.cookie('SESSION')!, id };
}

describe('the access log of pino', () => {
  it('has the token unless it is redacted', async () => {
    const { log, token } = await logOf({});
    expect(log.split(token)).toHaveLength(3);
  });

  it('has no token with the options of the documentation, but the session id', async () => {
    const { log, token, id } = await logOf({
      redact: ['req.headers.cookie', 'res.headers["set-cookie"]'],
      customProps: (request: { session?: Session }) => ({ sessionId: request.session?.id }),
    });
    expect(log).not.toContain(token);
    expect(log).toContain(id);
  });
});
