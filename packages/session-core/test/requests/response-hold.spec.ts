import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { connect, constants, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent } from '@nest-session/testing';
import { appendHeader } from '../../src/resolvers/response-headers.js';
import { type CommitGate, ResponseHold, sharedResponseFunctions } from '../../src/http/response-hold.js';

LeakGuard.install();

type Handler = (response: ServerResponse, request: IncomingMessage) => unknown;

/** A gate that waits for the test. */
class TestGate implements CommitGate {
  readonly log: string[] = [];
  headersSent = false;
  open!: () => void;
  fail!: (error: unknown) => void;
  work: Promise<void> | undefined = new Promise<void>((resolve, reject) => {
    this.open = () => {
      this.log.push('saved');
      resolve();
    };
    this.fail = reject;
  });

  constructor(private readonly response: ServerResponse) {}

  begin() {
    this.log.push('begin');
    return this.work;
  }

  complete() {
    this.log.push('complete');
    appendHeader(this.response, 'Set-Cookie', 'SESSION=1');
  }

  passed() {
    this.log.push('passed');
    this.headersSent = true;
  }

  replace(error: unknown) {
    this.log.push(`replace ${(error as Error).message}`);
    return { status: 503, json: '{"statusCode":503}' };
  }
}

let server: Server | undefined;

afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
  server = undefined;
});

/** Serves requests whose responses are held; `started` resolves when the handler has returned. */
async function serve(handler: Handler, configure: (gate: TestGate) => void = () => undefined) {
  let gate!: TestGate;
  let handled!: () => void;
  const started = new Promise<void>((resolve) => (handled = resolve));
  const held = createServer((req, res) => {
    gate = new TestGate(res);
    configure(gate);
    new ResponseHold(res, sharedResponseFunctions()).waitFor(gate);
    void Promise.resolve(handler(res, req)).catch(() => undefined);
    handled();
  });
  server = held;
  // Connections stay open until the client closes them; the default is five seconds.
  held.keepAliveTimeout = 0;
  held.listen(0, '127.0.0.1');
  await once(held, 'listening');
  const origin = `http://127.0.0.1:${(held.address() as AddressInfo).port}`;
  return { origin, agent: new HttpAgent(origin), started, gate: () => gate };
}

function connectionsOf(held: Server): Promise<number> {
  return new Promise((resolve, reject) =>
    held.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

const nothingToSave = (gate: TestGate) => (gate.work = undefined);

describe('ResponseHold with nothing to save', () => {
  it('sends the response in the same tick', async () => {
    let events: unknown[] = [];
    const { agent, gate } = await serve((response) => {
      response.end('hello');
      events = [response.headersSent, response.writableEnded, ...gate().log];
    }, nothingToSave);
    const answer = await agent.get('/');
    expect(answer.text).toBe('hello');
    expect(answer.headers).toMatchObject({ 'content-length': '5', 'set-cookie': ['SESSION=1'] });
    expect(events).toEqual([true, true, 'begin', 'complete', 'passed']);
  });

  it('leaves the response to a filter after Node.js has refused a status', async () => {
    const { agent, gate } = await serve((response) => {
      response.statusCode = 99;
      try {
        response.end('nonsense');
      } catch (error) {
        response.statusCode = 500;
        response.end((error as { code: string }).code);
      }
    }, nothingToSave);
    const answer = await agent.get('/');
    expect([answer.status, answer.text]).toEqual([500, 'ERR_HTTP_INVALID_STATUS_CODE']);
    expect(answer.setCookies).toEqual(['SESSION=1']);
    expect(gate().log.filter((entry) => entry === 'complete')).toHaveLength(1);
    // The changes of the filter are saved, too.
    expect(gate().log.filter((entry) => entry === 'begin')).toHaveLength(2);
  });

  it('keeps headers that others add in writeHead, and appends its own', async () => {
    const { agent } = await serve((response) => {
      const { writeHead } = response;
      response.writeHead = ((status: number) => {
        response.setHeader('Set-Cookie', ['other=1']);
        return writeHead.call(response, status);
      }) as typeof writeHead;
      response.end('x');
    }, nothingToSave);
    expect((await agent.get('/')).setCookies).toEqual(['other=1', 'SESSION=1']);
  });

  it('throws like Node.js at a second writeHead', async () => {
    let code: string | undefined;
    const { agent } = await serve((response) => {
      response.writeHead(200);
      try {
        response.writeHead(201);
      } catch (error) {
        code = (error as { code: string }).code;
      }
      response.end();
    }, nothingToSave);
    await agent.get('/');
    expect(code).toBe('ERR_HTTP_HEADERS_SENT');
  });
});

describe('ResponseHold', () => {
  const ways: Record<string, Handler> = {
    'end(chunk)': (response) => response.end('hello'),
    'end(chunk, encoding)': (response) => response.end(Buffer.from('hello').toString('hex'), 'hex'),
    'write and end': (response) => {
      response.write(Buffer.from('68656c', 'hex'));
      response.write('6c6f', 'hex');
      response.end();
    },
    'writeHead and end': (response) => response.writeHead(200, { 'Content-Type': 'text/plain' }).end('hello'),
    // The old name of writeHead, which is not in the types.
    'writeHeader and end': (response) => (response as any).writeHeader(200).end('hello'),
    'flushHeaders and end': (response) => {
      response.flushHeaders();
      response.end('hello');
    },
    pipe: (response) => Readable.from([Buffer.from('he'), Buffer.from('llo')]).pipe(response),
    pipeline: (response) => pipeline(Readable.from([Buffer.from('he'), Buffer.from('llo')]), response),
  };

  it.each(Object.keys(ways))('sends nothing before the save: %s', async (way) => {
    const { agent, started, gate } = await serve(ways[way]!);
    const answer = agent.get('/', { onHead: () => gate().log.push('head') });
    await started;
    expect(gate().log).toEqual(['begin']);
    gate().open();
    expect((await answer).text).toBe('hello');
    expect((await answer).setCookies).toEqual(['SESSION=1']);
    expect(gate().log).toEqual(['begin', 'saved', 'complete', 'passed', 'head']);
  });

  it('writes nothing to the socket while it holds', async () => {
    let bytes = -1;
    const { agent, started, gate } = await serve((response, { socket }) => {
      response.writeHead(200, { 'X-Early': '1' });
      response.flushHeaders();
      response.write('a');
      response.end('b');
      setImmediate(() => {
        bytes = socket.bytesWritten + socket.writableLength;
        gate().open();
      });
    });
    const answer = agent.get('/');
    await started;
    expect((await answer).text).toBe('ab');
    expect(bytes).toBe(0);
  });

  it('sends the content length that Node.js would have sent', async () => {
    const { agent, started, gate } = await serve((response) => response.end('hello'));
    const answer = agent.get('/');
    await started;
    gate().open();
    expect((await answer).headers).toMatchObject({ 'content-length': '5' });
  });

  describe('headers given to writeHead', () => {
    const forms: Record<string, unknown[]> = {
      object: [{ 'X-One': '1', 'Set-Cookie': ['a=1', 'b=2'] }],
      'object after a reason': ['Fine', { 'X-One': 1, 'Set-Cookie': ['a=1', 'b=2'] }],
      'flat array': [['X-One', '1', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2']],
      'flat array with a list': [['X-One', '1', 'Set-Cookie', ['a=1', 'b=2']]],
      pairs: [
        [
          ['X-One', '1'],
          ['Set-Cookie', 'a=1'],
          ['set-cookie', 'b=2'],
        ],
      ],
    };

    it.each(Object.keys(forms).flatMap((form) => [[form, 'held'] as const, [form, 'at once'] as const]))(
      'arrive together with the cookie: %s, %s',
      async (form, when) => {
        const { agent, started, gate } = await serve(
          (response) => {
            response.setHeader('X-One', 'replaced');
            response.setHeader('X-Two', '2');
            Reflect.apply(response.writeHead, response, [202, ...forms[form]!]);
            response.end('x');
          },
          when === 'at once' ? nothingToSave : undefined,
        );
        const answer = agent.get('/');
        await started;
        gate().open?.();
        const { status, headers, setCookies } = await answer;
        expect(status).toBe(202);
        expect(headers).toMatchObject({ 'x-one': '1', 'x-two': '2' });
        expect(setCookies).toEqual(['a=1', 'b=2', 'SESSION=1']);
      },
    );

    it('are not changed in place: a constant list does not receive the cookie of one response', async () => {
      const constant = ['a=1'];
      const { agent } = await serve((response) => {
        response.setHeader('Set-Cookie', constant);
        response.end();
      }, nothingToSave);
      expect((await agent.get('/')).setCookies).toEqual(['a=1', 'SESSION=1']);
      expect((await agent.get('/')).setCookies).toEqual(['a=1', 'SESSION=1']);
      expect(constant).toEqual(['a=1']);
    });

    it('keep the reason phrase', async () => {
      const { agent, started, gate } = await serve((response) => response.writeHead(200, 'Fine').end());
      const message = agent.open('GET', '/');
      await started;
      gate().open();
      expect((await message).statusMessage).toBe('Fine');
      (await message).resume();
    });
  });

  it('presents a held response to the application as sent', async () => {
    const seen: unknown[] = [];
    const { agent, started, gate } = await serve((response) => {
      seen.push(response.headersSent, response.writableEnded);
      response.write('a');
      seen.push(response.headersSent, response.writableEnded, response.writableNeedDrain);
      response.end();
      seen.push(response.headersSent, response.writableEnded);
    });
    const answer = agent.get('/');
    await started;
    gate().open();
    await answer;
    expect(seen).toEqual([false, false, true, false, true, true, true]);
  });

  it('does not let a late redirect change the response', async () => {
    const errors: unknown[] = [];
    const { agent, started, gate } = await serve((response) => {
      response.end('first');
      response.statusCode = 302;
      for (const change of [
        () => response.setHeader('Location', '/'),
        () => response.appendHeader('Location', '/'),
        () => response.removeHeader('Date'),
      ]) {
        try {
          change();
        } catch (error) {
          errors.push((error as { code: string }).code);
        }
      }
      response.end();
    });
    const answer = agent.get('/');
    await started;
    gate().open();
    expect([(await answer).status, (await answer).headers.location, (await answer).text]).toEqual([
      200,
      undefined,
      'first',
    ]);
    expect(errors).toEqual(Array(3).fill('ERR_HTTP_HEADERS_SENT'));
  });

  it('restores own properties of the response', async () => {
    let after: unknown[] = [];
    const { agent, started, gate } = await serve((response) => {
      const setHeader = response.setHeader.bind(response);
      response.setHeader = setHeader;
      response.end('x', () => (after = [response.setHeader === setHeader, Object.hasOwn(response, 'headersSent')]));
    });
    const answer = agent.get('/');
    await started;
    gate().open();
    await answer;
    expect(after).toEqual([true, false]);
  });

  it('calls back when the held chunks have been written', async () => {
    const called: string[] = [];
    const { agent, started, gate } = await serve((response) => {
      response.write('a', () => called.push('a'));
      response.write('b', 'utf8', () => called.push('b'));
      response.end(() => called.push('end'));
    });
    const answer = agent.get('/');
    await started;
    expect(called).toEqual([]);
    gate().open();
    expect((await answer).text).toBe('ab');
    await eventually(() => expect(called).toEqual(['a', 'b', 'end']));
  });

  it('makes a source wait until the response drains', async () => {
    const taken: boolean[] = [];
    const { agent, started, gate } = await serve(async (response) => {
      for (const chunk of ['a', 'b', 'c']) {
        const goOn = response.write(chunk);
        taken.push(goOn);
        if (!goOn) await once(response, 'drain');
      }
      response.end();
    });
    const answer = agent.get('/');
    await started;
    expect(taken).toEqual([false]);
    gate().open();
    expect((await answer).text).toBe('abc');
    expect(taken).toEqual([false, true, true]);
  });

  it('lets a source go on only when there is room for more', async () => {
    const hasNoRoom: boolean[] = [];
    const { agent, started, gate } = await serve((response) => {
      response.on('drain', () => {
        hasNoRoom.push(response.writableNeedDrain);
        if (!response.writableEnded) response.end('end');
      });
      expect(response.write(Buffer.alloc(8 * 1024 * 1024))).toBe(false);
    });
    const answer = agent.get('/');
    await started;
    gate().open();
    expect((await answer).text).toHaveLength(8 * 1024 * 1024 + 3);
    expect(hasNoRoom[0]).toBe(false);
  });

  it('sends a whole stream of 8 MB to a slow reader', async () => {
    const chunk = Buffer.alloc(64 * 1024, 'x');
    const { agent, started, gate } = await serve((response) =>
      pipeline(Readable.from(Array<Buffer>(128).fill(chunk)), response),
    );
    const open = agent.open('GET', '/');
    await started;
    gate().open();
    let length = 0;
    for await (const part of await open) {
      length += (part as Buffer).length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(length).toBe(128 * chunk.length);
  });

  it('responds to HEAD without a body', async () => {
    const { agent, started, gate } = await serve((response) => response.setHeader('Content-Length', 5).end('hello'));
    const answer = agent.request('HEAD', '/');
    await started;
    gate().open();
    expect((await answer).headers).toMatchObject({ 'content-length': '5', 'set-cookie': ['SESSION=1'] });
    expect((await answer).text).toBe('');
  });

  it('ends once, however often end() is called', async () => {
    const { agent, started, gate } = await serve((response) => {
      response.end('hello');
      response.end();
      response.end();
    });
    const answer = agent.get('/');
    await started;
    gate().open();
    expect((await answer).text).toBe('hello');
  });

  it('passes trailers', async () => {
    const { agent, started, gate } = await serve((response) => {
      response.writeHead(200, { Trailer: 'X-Sum' });
      response.write('a');
      response.addTrailers({ 'X-Sum': '1' });
      response.end();
    });
    const open = agent.open('GET', '/');
    await started;
    gate().open();
    const message = await open;
    for await (const _ of message);
    expect(message.trailers).toEqual({ 'x-sum': '1' });
  });

  it('passes early hints', async () => {
    const { origin, started, gate } = await serve((response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' });
      response.end('hello');
    });
    const sent = request(origin);
    const hints = once(sent, 'information');
    const response = once(sent, 'response');
    sent.end();
    await started;
    expect((await hints)[0]).toMatchObject({ statusCode: 103 });
    expect(gate().log).toEqual(['begin']);
    gate().open();
    const [message] = (await response) as [IncomingMessage];
    message.resume();
    expect(message.statusCode).toBe(200);
  });

  it('sends the error response when Node.js refuses the held headers', async () => {
    const { agent, started, gate } = await serve((response) => {
      response.statusCode = 99;
      response.setHeader('X-App', '1');
      response.end('nonsense');
    });
    const answer = agent.get('/');
    await started;
    gate().open();
    expect([(await answer).status, (await answer).headers['x-app']]).toEqual([503, undefined]);
    // It was dropped with the other headers, and the client needs it.
    expect((await answer).setCookies).toEqual(['SESSION=1']);
    expect(gate().log.find((entry) => entry.startsWith('replace'))).toMatch(/Invalid status code/);
  });

  it('closes the connection of a source that ignores back pressure', async () => {
    const { agent, started, gate } = await serve((response) => {
      const chunk = Buffer.alloc(1024 * 1024);
      for (let sent = 0; sent < 64 && !response.destroyed; sent++) response.write(chunk);
    });
    const answer = agent.get('/').catch((error: Error) => error.message);
    await started;
    expect(await answer).toBe('socket hang up');
    gate().open();
  });
});

describe('ResponseHold when the save fails', () => {
  const failure = new Error('store is down');

  it('sends the error and the headers of the gate, and nothing of the application', async () => {
    const { agent, started, gate } = await serve((response) => {
      response.setHeader('X-App', '1');
      response.statusMessage = 'All is well';
      response.writeHead(200, { 'Set-Cookie': 'a=1', 'Content-Length': 5, 'Content-Encoding': 'gzip' });
      response.write('hello');
      response.end();
    });
    const open = agent.open('GET', '/');
    await started;
    gate().fail(failure);
    const message = await open;
    const { connection: _, date: __, ...headers } = message.headers;
    expect([message.statusCode, message.statusMessage]).toEqual([503, 'Service Unavailable']);
    expect(headers).toEqual({
      'content-type': 'application/json; charset=utf-8',
      'content-length': '18',
      'set-cookie': ['SESSION=1'],
    });
    expect(JSON.parse(String(Buffer.concat(await message.toArray())))).toEqual({ statusCode: 503 });
    expect(gate().log).toEqual(['begin', 'replace store is down', 'complete', 'passed']);
  });

  it('responds to HEAD without a body', async () => {
    const { agent, started, gate } = await serve((response) => response.end('hello'));
    const answer = agent.request('HEAD', '/');
    await started;
    gate().fail(failure);
    expect([(await answer).status, (await answer).text]).toEqual([503, '']);
  });

  it('keeps headers that apply to every response, such as CORS headers', async () => {
    const { agent, started, gate } = await serve((response) => {
      const origin = { 'Access-Control-Allow-Origin': 'https://shop.example', Vary: 'Origin' };
      const security = { 'Content-Security-Policy': "default-src 'self'", 'X-Frame-Options': 'DENY' };
      const answer = { ETag: '"1"', Location: '/', 'Cache-Control': 'public', 'Content-Disposition': 'inline' };
      response
        .writeHead(201, { ...origin, ...security, ...answer, 'X-Request-Id': '1', 'RateLimit-Policy': '1' })
        .end();
    });
    const answer = agent.get('/');
    await started;
    gate().fail(failure);
    const { connection: _, date: __, 'set-cookie': ___, ...headers } = (await answer).headers;
    expect(headers).toEqual({
      'access-control-allow-origin': 'https://shop.example',
      vary: 'Origin',
      'content-security-policy': "default-src 'self'",
      'x-frame-options': 'DENY',
      'x-request-id': '1',
      'ratelimit-policy': '1',
      'content-type': 'application/json; charset=utf-8',
      'content-length': '18',
    });
  });

  it('keeps the connection usable', async () => {
    const { origin, started, gate } = await serve((response) => response.end('hello'));
    const agent = new HttpAgent(origin, { keepAlive: true });
    const answer = agent.get('/');
    await started;
    gate().fail(failure);
    expect((await answer).status).toBe(503);
    const second = agent.get('/');
    await eventually(() => expect(gate().log).toEqual(['begin']));
    gate().open();
    expect((await second).text).toBe('hello');
    agent.close();
  });

  it('closes the connection when a source continues to write', async () => {
    const { origin, started, gate } = await serve((response, { socket }) => {
      const source = setInterval(() => response.write('a'), 1);
      socket.once('close', () => clearInterval(source));
      response.write('a');
    });
    const agent = new HttpAgent(origin, { keepAlive: true });
    const answer = agent.get('/');
    await started;
    gate().fail(failure);
    expect((await answer).json()).toEqual({ statusCode: 503 });
    expect((await answer).headers.connection).toBe('close');
    await eventually(async () => expect(await connectionsOf(server!)).toBe(0));
  });

  it('ends the stream when a source continues to write on HTTP/2, and sends no Connection header', async () => {
    const closed: string[] = [];
    const headers: string[] = [];
    let gate!: TestGate;
    const held = createHttp2Server((request, response) => {
      const { setHeader } = response;
      response.setHeader = (name, value) => {
        headers.push(name);
        return setHeader.call(response, name, value);
      };
      gate = new TestGate(response as unknown as ServerResponse);
      new ResponseHold(response as unknown as ServerResponse, sharedResponseFunctions()).waitFor(gate);
      request.socket.once('close', () => closed.push(request.url));
      response.write('a');
    }).listen(0, '127.0.0.1');
    await once(held, 'listening');
    const client = connect(`http://127.0.0.1:${(held.address() as AddressInfo).port}`);
    for (const path of ['/first', '/second']) {
      const stream = client.request({ ':path': path });
      await once(held, 'request');
      gate.fail(failure);
      expect(JSON.parse(String(Buffer.concat(await stream.toArray())))).toEqual({ statusCode: 503 });
    }
    await eventually(() => expect(closed).toEqual(['/first', '/second']));
    client.close();
    await new Promise((resolve) => held.close(resolve));
    expect(headers).toEqual(Array(2).fill(['Content-Type', 'Content-Length', 'Set-Cookie']).flat());
  });

  it('calls the callbacks of the held chunks with an error', async () => {
    const called: unknown[] = [];
    const { agent, started, gate } = await serve((response) => {
      response.write('a', (error) => called.push((error as { code?: string } | undefined)?.code));
    });
    const answer = agent.get('/');
    await started;
    gate().fail(failure);
    await answer;
    expect(called).toEqual(['ERR_STREAM_DESTROYED']);
  });

  it('discards later chunks and wakes a source that waits for `drain`', async () => {
    const done: unknown[] = [];
    const { agent, started, gate } = await serve(async (response) => {
      if (!response.write('a')) await once(response, 'drain');
      done.push(response.write('b', (error) => done.push(error instanceof Error)));
      response.end('c', () => done.push('finished'));
    });
    const answer = agent.get('/');
    await started;
    gate().fail(failure);
    expect((await answer).json()).toEqual({ statusCode: 503 });
    await eventually(() => expect(done).toHaveLength(3));
    expect(done).toEqual(expect.arrayContaining([false, true, 'finished']));
  });

  it.each(['pipe', 'pipeline'])('leaves no endless source behind: %s', async (way) => {
    let source: Readable | undefined;
    const { agent, started, gate } = await serve((response) => {
      const endless = new Readable({ read: () => endless.push('x'.repeat(1024)) });
      source = endless;
      if (way === 'pipe') return endless.pipe(response.on('close', () => endless.destroy()));
      return pipeline(endless, response);
    });
    const answer = agent.get('/');
    await started;
    gate().fail(failure);
    expect((await answer).status).toBe(503);
    await eventually(() => expect(source?.destroyed).toBe(true));
  });
});

describe('ResponseHold on HTTP/2', () => {
  /** Sends one request with a new client; `events` are those of the response. */
  async function ask(handler: (response: ServerResponse) => unknown) {
    const events: string[] = [];
    let gate!: TestGate;
    const http2 = createHttp2Server((_, response) => {
      const compatible = response as unknown as ServerResponse;
      gate = new TestGate(compatible);
      new ResponseHold(compatible, sharedResponseFunctions()).waitFor(gate);
      response.on('close', () => events.push('close')).on('error', () => events.push('error'));
      handler(compatible);
    });
    http2.listen(0, '127.0.0.1');
    await once(http2, 'listening');
    const client = connect(`http://127.0.0.1:${(http2.address() as AddressInfo).port}`);
    const stream = client.request({ ':path': '/' });
    await eventually(() => expect(gate).toBeDefined());
    const close = async () => {
      client.close();
      await new Promise<void>((resolve) => http2.close(() => resolve()));
    };
    return { stream, gate, events, close };
  }

  it('sends nothing before the save', async () => {
    const { stream, gate, close } = await ask((response) => {
      response.writeHead(202, { 'Set-Cookie': 'app=1' });
      response.write('he');
      response.end('llo');
    });
    stream.on('response', () => gate.log.push('head'));
    gate.open();
    const [head] = (await once(stream, 'response')) as [Record<string, unknown>];
    expect([head[':status'], head['set-cookie']]).toEqual([202, ['app=1', 'SESSION=1']]);
    expect(String(Buffer.concat(await stream.toArray()))).toBe('hello');
    expect(gate.log).toEqual(['begin', 'saved', 'complete', 'passed', 'head']);
    await close();
  });

  it('closes the connection of a source that ignores back pressure', async () => {
    const refused: unknown[] = [];
    const { stream, gate, close } = await ask((response) => {
      const megabyte = Buffer.alloc(1024 * 1024);
      for (let sent = 0; sent < 64; sent++) response.write(megabyte, (error) => error && refused.push(error));
    });
    await eventually(() => stream.closed);
    expect(refused).toHaveLength(64 - 17);
    gate.open();
    await close();
  });

  it.each(['open', 'fail'] as const)('does nothing for a client that leaves during the save: %s', async (outcome) => {
    const { stream, gate, events, close } = await ask((response) => {
      response.write('a', () => events.push('called back'));
      response.end('b');
    });
    stream.on('error', () => {});
    stream.close(constants.NGHTTP2_CANCEL);
    await eventually(() => expect(events).toContain('close'));
    gate[outcome](new Error('store is down') as never);
    await eventually(() => expect(events).toContain('called back'));
    expect(events).toEqual(['close', 'called back']);
    await close();
  });
});

describe('ResponseHold when the client leaves during the save', () => {
  it.each(['open', 'fail'] as const)('finishes the save and does nothing else: %s', async (outcome) => {
    const events: string[] = [];
    const { agent, started, gate } = await serve((response, { socket }) => {
      response.on('close', () => events.push('close')).on('error', () => events.push('error'));
      socket.on('error', () => events.push('socket error'));
      response.write('a', () => events.push('called back'));
      response.end('b');
    });
    const leaving = new AbortController();
    const answer = agent.get('/', { signal: leaving.signal }).catch((error: Error) => error.name);
    await started;
    leaving.abort();
    expect(await answer).toBe('AbortError');
    await eventually(() => expect(events).toEqual(['close']));
    gate()[outcome](new Error('store is down') as never);
    await eventually(() => expect(events).toEqual(['close', 'called back']));
  });
});
