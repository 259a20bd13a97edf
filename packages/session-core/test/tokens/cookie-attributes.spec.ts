import type { IncomingMessage } from 'node:http';
import { Controller, Get } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import { CookieSessionIdResolver, Session } from '../../src/index.js';
import { AccountController } from '../support/account.routes.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();

@Controller()
class TestController {
  @Get(['start', 'widget/start'])
  start(@Session() session: Session) {
    session.setAttribute('started', true);
  }

  @Get(['end', 'widget/end'])
  end(@Session() session: Session) {
    session.invalidate();
  }
}

const DOMAIN = ['example.org', 'example.com'];

/** As docs/cookies-and-headers.md has it: other attributes for the pages that other sites embed. */
class CookieByRequest extends CookieSessionIdResolver {
  readonly #embedded = new CookieSessionIdResolver({
    domain: DOMAIN,
    secure: true,
    sameSite: 'none',
    partitioned: true,
    name: this.name,
  });

  constructor() {
    super({ domain: DOMAIN });
  }

  override cookieFor(request: IncomingMessage) {
    const isEmbedded = request.url?.startsWith('/widget') || request.headers['x-widget'];
    return isEmbedded ? this.#embedded.cookieFor(request) : super.cookieFor(request);
  }
}

describe.each(['express', 'fastify'] as const)('on %s, the cookie of a request', (platform) => {
  afterEach(closeApps);

  async function start(trustProxy?: string): Promise<HttpAgent> {
    const { origin } = await startApp({
      platform,
      controllers: [TestController],
      ...(trustProxy !== undefined && { trustProxy }),
      session: { sessionIdResolver: CookieByRequest },
    });
    return new HttpAgent(origin);
  }

  /** The attributes of the cookies that a session is started and ended with. */
  async function attributes(agent: HttpAgent, prefix: string, headers: Record<string, string>): Promise<string[]> {
    const started = (await agent.get(`${prefix}/start`, { headers })).setCookies[0]!;
    const cookie = started.slice(0, started.indexOf(';'));
    const ended = (await agent.get(`${prefix}/end`, { headers: { ...headers, cookie } })).setCookies[0]!;
    return [started.replace(/^SESSION=[\w-]{43}; /, ''), ended.replace('SESSION=; Max-Age=0; ', '')];
  }

  it.each<[string, string | undefined, string, Record<string, string>, string]>([
    ['host', undefined, '', { host: 'shop.example.org' }, 'Domain=example.org; Path=/; HttpOnly; SameSite=Lax'],
    ['host', undefined, '', { host: 'shop.example.com:80' }, 'Domain=example.com; Path=/; HttpOnly; SameSite=Lax'],
    ['host', undefined, '', { host: 'example.net' }, 'Path=/; HttpOnly; SameSite=Lax'],
    [
      'host that a trusted proxy names',
      'loopback',
      '',
      { host: 'internal', 'x-forwarded-host': 'www.example.org', 'x-forwarded-proto': 'https' },
      'Domain=example.org; Path=/; HttpOnly; Secure; SameSite=Lax',
    ],
    [
      'host, whatever somebody else names',
      undefined,
      '',
      { host: 'internal', 'x-forwarded-host': 'www.example.org' },
      'Path=/; HttpOnly; SameSite=Lax',
    ],
    ['path', undefined, '/widget', { host: 'internal' }, 'Path=/; HttpOnly; Secure; Partitioned; SameSite=None'],
    [
      'headers',
      undefined,
      '',
      { host: 'a.example.org', 'x-widget': '1' },
      'Domain=example.org; Path=/; HttpOnly; Secure; Partitioned; SameSite=None',
    ],
  ])('has attributes by its %s (proxies: %s): %s %p', async (_, trustProxy, prefix, headers, expected) => {
    expect(await attributes(await start(trustProxy), prefix, headers)).toEqual([expected, expected]);
  });

  it('is named __Host-SESSION where it is always Secure, and a cookie named SESSION is not read then', async () => {
    const { agent } = await startApp({
      platform,
      controllers: [AccountController],
      session: { cookie: { secure: true } },
    });
    const sent = (await agent().get('/start')).setCookies;
    expect(sent).toEqual([
      expect.stringMatching(/^__Host-SESSION=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
    ]);
    const named = sent[0]!.slice(0, sent[0]!.indexOf(';'));
    const nameOf = async (cookie: string) => (await agent().get('/name', { headers: { cookie } })).json();
    expect(await nameOf(named)).toEqual({ name: 'ann' });
    expect(await nameOf(named.replace('__Host-', ''))).toEqual({});
    expect(await nameOf(`SESSION=x; ${named}`)).toEqual({ name: 'ann' });
  });
});
