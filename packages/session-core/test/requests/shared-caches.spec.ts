import { createHash } from 'node:crypto';
import { Controller, Get, type MessageEvent, Query, Req, Res, Sse } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import type { HttpAgent } from '@nest-session/testing';
import { of, type Observable } from 'rxjs';
import { HeaderSessionIdResolver, Session, type SessionModuleOptions } from '../../src/index.js';
import { type RawReply, rawOf } from '../support/raw.response.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

type Reply = RawReply & { header(name: string, value: string | string[]): void; send(body: string): void };

const FOR_CDN = {
  'Cache-Control': 'public, max-age=600',
  'CDN-Cache-Control': 'max-age=600',
  'Vercel-CDN-Cache-Control': 'max-age=600',
  'Netlify-CDN-Cache-Control': 'max-age=600',
  'Edge-Control': 'cache-maxage=1d',
  'Surrogate-Control': 'max-age=600',
  'X-Accel-Expires': '600',
  'X-Other': 'stays',
};

const PAGE = 'hello ann';
const ETAG = `"${createHash('sha256').update(PAGE).digest('base64url')}"`;

@Controller()
class PageController {
  @Get('start')
  start(@Session() session: Session) {
    session.setAttribute('name', 'ann');
  }

  @Get('start-for-cdn')
  startForCdn(@Session() session: Session, @Query('raw') isRaw: string, @Res() reply: Reply) {
    session.setAttribute('name', 'ann');
    if (isRaw) return rawOf(reply).writeHead(200, FOR_CDN).end();
    for (const [name, value] of Object.entries(FOR_CDN)) reply.header(name, value);
    reply.send('');
  }

  @Get('page')
  page(@Session() session: Session, @Query('header') header: string, @Res({ passthrough: true }) reply: Reply) {
    if (header) reply.header('Cache-Control', header);
    return { name: session.getAttribute('name') };
  }

  @Get('plain')
  plain(@Query('header') header: string, @Res({ passthrough: true }) reply: Reply) {
    if (header) reply.header('Cache-Control', header);
    return { plain: true };
  }

  @Get('raw')
  raw(@Session() session: Session, @Res() reply: Reply) {
    const response = rawOf(reply);
    response.setHeader('CDN-Cache-Control', 'public, max-age=60');
    response.writeHead(200, { 'Cache-Control': ['public', 'max-age=600'] });
    response.end(session.getAttribute('name'));
  }

  @Get('tagged')
  tagged(@Session() session: Session, @Req() request: { headers: Record<string, string> }, @Res() reply: Reply) {
    const response = rawOf(reply);
    session.getAttribute('name');
    response.setHeader('ETag', ETAG);
    response.setHeader('Cache-Control', 'no-cache');
    response.statusCode = request.headers['if-none-match'] === ETAG ? 304 : 200;
    response.end(response.statusCode === 304 ? undefined : PAGE);
  }

  @Get('failing')
  failing(@Session() session: Session, @Res({ passthrough: true }) reply: Reply) {
    reply.header('Cache-Control', 'public, max-age=600');
    throw new Error(session.getAttribute('name'));
  }

  @Sse('events')
  events(@Session() session: Session): Observable<MessageEvent> {
    return of({ data: String(session.getAttribute('name')) });
  }
}

describe.each(['express', 'fastify'] as const)('a cache that several clients share, on %s,', (platform) => {
  let client: HttpAgent;
  let stranger: HttpAgent;
  beforeEach(async () => {
    const { agent } = await startApp({ platform, controllers: [PageController] });
    [client, stranger] = [agent(), agent()];
    await client.get('/start');
  });

  const cacheControl = async (path: string, agent = client) => (await agent.get(path)).headers['cache-control'];

  it.each([
    ['', 'private'],
    ['public', 'private'],
    ['public, max-age=600', 'private, max-age=600'],
    ['max-age=600', 'private, max-age=600'],
    ['Public, S-MaxAge=60, Max-Age=600, immutable', 'private, Max-Age=600, immutable'],
    ['s-maxage=60', 'private'],
    ['public, max-age=0, must-revalidate, proxy-revalidate', 'private, max-age=0, must-revalidate'],
    ['no-cache, stale-while-revalidate=30', 'private, no-cache, stale-while-revalidate=30'],
    ['no-cache="Set-Cookie, X-A", max-age=60', 'private, no-cache="Set-Cookie, X-A", max-age=60'],
    ['private="Set-Cookie, X-A", max-age=60', 'private, max-age=60'],
    ['private, public', 'private'],
    ['max-age=60, private', 'max-age=60, private'],
    ['Private', 'Private'],
    ['no-store', 'no-store'],
    ['public, no-store', 'public, no-store'],
    [', ,', 'private'],
    ['"', 'private, "'],
  ])('keeps no response that used the session: %j becomes %j', async (header, expected) => {
    expect(await cacheControl(`/page?header=${encodeURIComponent(header)}`)).toBe(expected);
    // The response to a client without a session is for that client, too.
    expect(await cacheControl(`/page?header=${encodeURIComponent(header)}`, stranger)).toBe(expected);
  });

  it.each(['', 'public, max-age=600', 's-maxage=60', 'no-cache'])(
    'may keep a response that did not use the session: %j stays',
    async (header) => {
      expect(await cacheControl(`/plain?header=${encodeURIComponent(header)}`)).toBe(header || undefined);
    },
  );

  it('keeps none with headers that were given to writeHead(); those for your own CDN stay', async () => {
    const { headers, text } = await client.get('/raw');
    expect([headers['cache-control'], text]).toEqual(['private, max-age=600', 'ann']);
    expect(headers['cdn-cache-control']).toBe('public, max-age=60');
  });

  it.each<[string, SessionModuleOptions, string]>([
    ['cookie', {}, 'set-cookie'],
    ['header', { sessionIdResolver: HeaderSessionIdResolver.xAuthToken() }, 'x-auth-token'],
  ])(
    'keeps none that sends the token in a %s, also where the application speaks to your own CDN',
    async (_, session, header) => {
      const { agent } = await startApp({ platform, controllers: [PageController], session });
      for (const path of ['/start-for-cdn', '/start-for-cdn?raw=1']) {
        const { headers } = await agent().get(path);
        expect(headers).toMatchObject({ [header]: expect.anything(), 'cache-control': 'no-store', 'x-other': 'stays' });
        expect(Object.keys(headers).filter((name) => /-cache-control$|^edge|^surrogate|^x-accel/.test(name))).toEqual(
          [],
        );
      }
    },
  );

  it('keeps none, and the one of the client still gets a 304', async () => {
    const first = await client.get('/tagged');
    expect([first.status, first.text, first.headers['cache-control']]).toEqual([200, PAGE, 'private, no-cache']);
    const second = await client.get('/tagged', { headers: { 'if-none-match': String(first.headers.etag) } });
    expect([second.status, second.headers['cache-control'], second.headers.etag]).toEqual([
      304,
      'private, no-cache',
      ETAG,
    ]);
  });

  it('keeps no error', async () => {
    const { status, headers } = await client.get('/failing');
    expect([status, headers['cache-control']]).toEqual([500, 'private, max-age=600']);
  });

  it('keeps no stream of events, which stays uncached as it was', async () => {
    const { headers, text } = await client.get('/events');
    expect(text).toContain('data: ann');
    expect(headers['cache-control']).toMatch(/^private, no-cache, no-store/);
  });
});
