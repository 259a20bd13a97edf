import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, type HttpAgentOptions } from '@nest-session/testing';

LeakGuard.install();

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

describe('HttpAgent', () => {
  let server: Server;
  let origin: string;
  let handler: Handler;

  const agentFor = (answer: Handler, options?: HttpAgentOptions): HttpAgent => {
    handler = answer;
    return new HttpAgent(origin, options);
  };

  beforeAll(async () => {
    server = createServer((request, response) => handler(request, response)).listen(0, '127.0.0.1');
    // Connections stay open until the client closes them; the default is five seconds.
    server.keepAliveTimeout = 0;
    await once(server, 'listening');
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterAll(async () => {
    server.close();
    await once(server, 'close');
  });

  it('returns status, headers and body', async () => {
    const agent = agentFor((request, response) => {
      response
        .writeHead(418, { 'X-Kind': 'teapot', 'Set-Cookie': ['a=1', 'b=2; Path=/x'] })
        .end('{"url":"' + request.url + '"}');
    });
    const response = await agent.get('/pot?x=1');
    expect(response.status).toBe(418);
    expect(response.headers['x-kind']).toBe('teapot');
    expect(response.rawHeaders).toContain('X-Kind');
    expect(response.setCookies).toEqual(['a=1', 'b=2; Path=/x']);
    expect(response.json<{ url: string }>().url).toBe('/pot?x=1');
  });

  it('refuses an origin of https, instead of sending a request that no server understands', () => {
    for (const options of [{}, { secure: true }]) {
      expect(() => new HttpAgent('https://127.0.0.1:3000', options)).toThrow(
        /^HttpAgent sends requests over http, and not to https:\/\/127\.0\.0\.1:3000: .* `httpsOptions`, .* `secure`/,
      );
    }
  });

  it('sends objects as JSON and texts as they are', async () => {
    const agent = agentFor((request, response) => {
      request.setEncoding('utf8').on('data', (text: string) => {
        response.end(`${request.method} ${request.headers['content-type']} ${text}`);
      });
    });
    expect((await agent.post('/', { name: 'é' })).text).toBe('POST application/json {"name":"é"}');
    expect((await agent.request('PUT', '/', { body: 'plain' })).text).toBe('PUT undefined plain');
    const form = { body: 'a=1', headers: { 'Content-Type': 'application/x-www-form-urlencoded' } };
    expect((await agent.request('POST', '/', form)).text).toBe('POST application/x-www-form-urlencoded a=1');
  });

  it('keeps cookies and sends them to their paths', async () => {
    const agent = agentFor((request, response) => {
      if (request.url === '/set') response.setHeader('Set-Cookie', ['sid=1; Path=/; HttpOnly', 'admin=2; Path=/admin']);
      if (request.url === '/end') response.setHeader('Set-Cookie', 'sid=; Path=/; Max-Age=0');
      response.end(request.headers.cookie ?? 'none');
    });
    expect((await agent.get('/')).text).toBe('none');
    await agent.get('/set');
    expect((await agent.get('/')).text).toBe('sid=1');
    expect((await agent.get('/admin/')).text).toBe('admin=2; sid=1');
    expect(agent.cookie('sid')).toBe('1');
    expect(agent.cookies).toEqual({ sid: '1', admin: '2' });
    await agent.get('/end');
    expect(agent.cookie('sid')).toBeUndefined();
    agent.clearCookies();
    expect(agent.cookies).toEqual({});
  });

  it('sends a cookie header of the caller instead of the cookies in its jar', async () => {
    const agent = agentFor((request, response) => response.end(request.headers.cookie));
    agent.setCookie('sid=1; Path=/');
    expect((await agent.get('/')).text).toBe('sid=1');
    expect((await agent.get('/', { headers: { Cookie: 'sid=%%%' } })).text).toBe('sid=%%%');
  });

  it('keeps Secure cookies only when it is on https', async () => {
    const answer: Handler = (_request, response) => response.setHeader('Set-Cookie', 'sid=1; Secure; Path=/').end();
    const plain = agentFor(answer);
    await plain.get('/');
    expect(plain.cookies).toEqual({});
    const secure = agentFor(answer, { secure: true });
    await secure.get('/');
    expect(secure.cookies).toEqual({ sid: '1' });
  });

  it('sends tokens back in their headers, and forgets those whose header is empty', async () => {
    const tokens = ['first', undefined, 'second', ''];
    const agent = agentFor(
      (request, response) => {
        const token = tokens.shift();
        if (token !== undefined) response.setHeader('X-Auth-Token', token);
        response.end(request.headers['x-auth-token'] ?? 'none');
      },
      { tokenHeaders: ['X-Auth-Token'] },
    );
    const sent = [];
    for (let i = 0; i < 5; i += 1) sent.push((await agent.get('/')).text);
    expect(sent).toEqual(['none', 'first', 'first', 'second', 'none']);
    expect(agent.headersFor('/')).toEqual({});
  });

  it('returns the headers of a request, for other clients', () => {
    const options = { tokenHeaders: ['X-Auth-Token'], headers: { 'X-Own': '1' } };
    const agent = agentFor((_request, response) => response.end(), options);
    agent.keep({ 'set-cookie': ['sid=1; Path=/', 'admin=2; Path=/admin'], 'x-auth-token': 'token', 'x-other': '1' });
    const always = { 'x-auth-token': 'token', 'x-own': '1' };
    expect(agent.headersFor('/')).toEqual({ ...always, cookie: 'sid=1' });
    expect(agent.fork().headersFor('/admin')).toEqual({ ...always, cookie: 'admin=2; sid=1' });
  });

  it('returns each header as one text, which is all that supertest takes', () => {
    const headers = { 'X-Count': 2, 'X-List': ['a', 'b'], 'X-None': undefined };
    const agent = agentFor((_request, response) => response.end(), { headers });
    expect(agent.headersFor('/')).toEqual({ 'x-count': '2', 'x-list': 'a, b' });
    const cookies = new HttpAgent('http://localhost', { headers: { Cookie: ['a=1', 'b=2'] } });
    expect(cookies.headersFor('/')).toEqual({ cookie: 'a=1; b=2' });
  });

  // Not every machine has IPv6.
  if (Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'))) {
    it('connects to a server on an IPv6 address', async () => {
      const own = createServer((_request, response) => response.end('six')).listen(0, '::1');
      await once(own, 'listening');
      const agent = new HttpAgent(`http://[::1]:${(own.address() as AddressInfo).port}`);
      expect((await agent.get('/')).text).toBe('six');
      own.close();
      await once(own, 'close');
    });
  }

  it('has forks that keep cookies of their own', async () => {
    const agent = agentFor((request, response) => response.end(request.headers.cookie), { headers: { 'x-own': '1' } });
    agent.setCookie('sid=1');
    const fork = agent.fork();
    fork.setCookie('sid=2');
    agent.setCookie('theme=dark');
    expect((await agent.get('/')).text).toBe('sid=1; theme=dark');
    expect((await fork.get('/')).text).toBe('sid=2');
  });

  it('follows no redirect', async () => {
    const agent = agentFor((_request, response) => response.writeHead(302, { Location: '/elsewhere' }).end());
    const response = await agent.get('/');
    expect([response.status, response.headers.location]).toEqual([302, '/elsewhere']);
  });

  it('runs requests concurrently', async () => {
    const waiting: ServerResponse[] = [];
    const agent = agentFor((_request, response) => {
      waiting.push(response);
      if (waiting.length === 10) for (const each of waiting) each.end('together');
    });
    const responses = await Promise.all(Array.from({ length: 10 }, () => agent.get('/')));
    expect(responses.map(({ text }) => text)).toEqual(Array.from({ length: 10 }, () => 'together'));
  });

  it('reports the headers before the body, with their cookies in the jar', async () => {
    const agent = agentFor((_request, response) => {
      response.writeHead(200, { 'Set-Cookie': 'sid=1' }).flushHeaders();
      finish = () => response.end('body');
    });
    let finish = (): unknown => undefined;
    const seen: unknown[] = [];
    const response = await agent.get('/', {
      onHead: (head) => {
        seen.push(head.statusCode, agent.cookie('sid'));
        finish();
      },
    });
    expect(seen).toEqual([200, '1']);
    expect(response.text).toBe('body');
  });

  it('rejects when onHead throws, and closes the connection', async () => {
    const agent = agentFor((_request, response) => {
      hungUp = once(response, 'close');
      response.write('half');
    });
    let hungUp: Promise<unknown> | undefined;
    const onHead = (): never => {
      throw new Error('an expectation failed');
    };
    await expect(agent.get('/', { onHead })).rejects.toThrow('an expectation failed');
    await hungUp;
  });

  it('opens a stream that can be closed', async () => {
    let hungUp: Promise<unknown> | undefined;
    const agent = agentFor((_request, response) => {
      hungUp = once(response, 'close');
      response.write('data: 1\n\n');
    });
    const stream = await agent.open('GET', '/events');
    const [chunk] = (await once(stream, 'data')) as [Buffer];
    expect(chunk.toString()).toBe('data: 1\n\n');
    stream.destroy();
    await hungUp;
  });

  it('rejects when the connection breaks, before the headers or in the body', async () => {
    const agent = agentFor((_request, response) => response.destroy());
    await expect(agent.get('/')).rejects.toThrow('socket hang up');
    handler = (_request, response) => {
      response.writeHead(200, { 'Content-Length': 10 }).write('half', () => response.destroy());
    };
    await expect(agent.get('/')).rejects.toThrow('aborted');
  });

  it('can be aborted', async () => {
    const abort = new AbortController();
    const agent = agentFor((_request, response) => {
      closed = once(response, 'close');
      abort.abort();
    });
    let closed: Promise<unknown> | undefined;
    await expect(agent.get('/', { signal: abort.signal })).rejects.toThrow('aborted');
    expect(closed).toBeDefined();
    await closed;
  });

  it('reuses a connection only with keepAlive', async () => {
    const connections = new Set<unknown>();
    const answer: Handler = (request, response) => {
      connections.add(request.socket);
      response.end();
    };
    const agent = agentFor(answer);
    await agent.get('/');
    await agent.get('/');
    expect(connections.size).toBe(2);
    const keeping = agentFor(answer, { keepAlive: true });
    connections.clear();
    await keeping.get('/');
    await keeping.get('/');
    expect(connections.size).toBe(1);
    keeping.close();
  });
});
