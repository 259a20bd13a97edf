import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, createServer as createHttp2Server, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Controller, Post, Res } from '@nestjs/common';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Session } from '../../src/index.js';
import { type CommitGate, ResponseHold, sharedResponseFunctions } from '../../src/http/response-hold.js';
import { type RawReply, rawOf } from '../support/raw.response.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

type Done = (error?: unknown) => void;

/** What an application may do with a response that it has ended. */
const CALLS: Readonly<Record<string, (response: ServerResponse, done: Done) => unknown>> = {
  'end()': (response) => response.end(),
  'end(callback)': (response, done) => response.end(done),
  'end(chunk)': (response) => response.end('late'),
  'end(chunk, callback)': (response, done) => response.end('late', done),
  'end(chunk, encoding, callback)': (response, done) => response.end('late', 'utf8', done),
  'write(chunk)': (response) => response.write('late'),
  'write(chunk, callback)': (response, done) => response.write('late', done),
  'write(chunk, encoding, callback)': (response, done) => response.write('late', 'utf8', done),
  'writeHead()': (response) => response.writeHead(500, { 'X-Late': '1' }),
  'flushHeaders()': (response) => response.flushHeaders(),
  'setHeader()': (response) => response.setHeader('X-Late', '1'),
  'appendHeader()': (response) => response.appendHeader('X-Late', '1'),
  'removeHeader()': (response) => response.removeHeader('X-App'),
  'destroy()': (response) => void response.destroy(),
  'destroy(error)': (response) => void response.destroy(new Error('late')),
};

/** What a check before such a call may read. */
const PROPERTIES = [
  'finished',
  'writableEnded',
  'headersSent',
  'writableFinished',
  'destroyed',
  'writable',
  'closed',
  'errored',
  'statusCode',
] as const;

const shown = (response: ServerResponse) =>
  Object.fromEntries(PROPERTIES.map((name) => [name, (response as unknown as Record<string, unknown>)[name]]));

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

class OneGate implements CommitGate {
  readonly work = new Gate();
  headersSent = false;
  begin = () => this.work.pass();
  complete = () => undefined;
  passed = () => void (this.headersSent = true);
  replace = () => ({ status: 503, json: '{}' });
}

interface Served {
  readonly response: ServerResponse;
  readonly gate: OneGate;
  /** The status and the body, or the error, that the client got. */
  readonly answer: Promise<string>;
  leave(): void;
  close(): Promise<void>;
}

type Protocol = 'HTTP/1.1' | 'HTTP/2';

/** Serves one request, whose response is held or is that of Node.js alone. */
async function serve(protocol: Protocol, isHeld: boolean): Promise<Served> {
  const gate = new OneGate();
  const isHttp2 = protocol === 'HTTP/2';
  const server = (isHttp2 ? createHttp2Server() : createServer()) as Server & Http2Server;
  const responding = new Promise<ServerResponse>((resolve) => {
    server.on('request', (_: IncomingMessage, response: ServerResponse) => {
      if (isHeld) new ResponseHold(response, sharedResponseFunctions()).waitFor(gate);
      response.setHeader('X-App', '1');
      resolve(response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = isHttp2 ? askHttp2(origin) : askHttp1(origin);
  const close = async () => {
    client.leave();
    await new Promise((resolve) => server.close(resolve));
  };
  return { ...client, response: await responding, gate, close };
}

function askHttp1(origin: string) {
  const request = get(origin, { agent: false });
  const answer = once(request, 'response').then(async ([message]) => {
    const { statusCode, statusMessage, headers } = message as IncomingMessage;
    const body = Buffer.concat(await (message as IncomingMessage).toArray()).toString();
    return [statusCode, statusMessage, headers['x-late'], body].join(' ');
  });
  return { answer: answer.catch((error: NodeJS.ErrnoException) => String(error.code)), leave: () => request.destroy() };
}

function askHttp2(origin: string) {
  const session = connect(origin);
  const stream = session.request({ ':path': '/' });
  const answer = once(stream, 'response').then(async ([head]) => {
    const headers = head as Record<string, unknown>;
    return [headers[':status'], headers['x-late'], Buffer.concat(await stream.toArray()).toString()].join(' ');
  });
  const leave = () => {
    stream.on('error', () => undefined).destroy();
    session.close();
  };
  return { answer: answer.catch((error: NodeJS.ErrnoException) => String(error.code)), leave };
}

/** Calls a function of an ended response; resolves to what came of it. */
async function outcomeOf({ response }: Served, call: string): Promise<unknown[]> {
  const outcome: unknown[] = [];
  const note = (error: unknown) => outcome.push('error event', error);
  response.on('error', note);
  try {
    const result = CALLS[call]!(response, () => undefined);
    outcome.push(result === response ? 'response' : result);
  } catch (error) {
    outcome.push((error as { code: string }).code);
  }
  await nextTurn();
  response.off('error', note);
  return outcome;
}

type Moment = (served: Served) => Promise<void>;

/** Moments at which the application goes on after it has ended a held response. */
const MOMENTS: Readonly<Record<string, Moment>> = {
  'in the same turn': () => Promise.resolve(),
  'while it is held': async () => void (await nextTurn()),
  'when it is sent': async ({ gate, response }) => {
    gate.work.open();
    await once(response, 'finish');
  },
  'when an error was sent instead': async ({ gate, response }) => {
    gate.work.fail(new Error('store is down'));
    await once(response, 'finish');
  },
};

const PROTOCOLS = ['HTTP/1.1', 'HTTP/2'] as const;
const cases = PROTOCOLS.flatMap((protocol) =>
  Object.keys(MOMENTS).flatMap((moment) => Object.keys(CALLS).map((call) => [protocol, moment, call] as const)),
);

describe('a held response that the application has ended', () => {
  const sent: Partial<Record<Protocol, Served>> = {};
  beforeAll(async () => {
    for (const protocol of PROTOCOLS) {
      const plain = (sent[protocol] = await serve(protocol, false));
      plain.response.end('body');
      await plain.answer;
      await eventually(() => expect(plain.response.writableFinished).toBe(true));
      await nextTurn();
    }
  });
  afterAll(async () => {
    for (const plain of Object.values(sent)) await plain.close();
  });

  it.each(cases)('does what a sent one of Node.js does: %s, %s, %s', async (protocol, moment, call) => {
    const held = await serve(protocol, true);
    held.response.end('body');
    await MOMENTS[moment]!(held);
    const outcome = await outcomeOf(held, call);
    held.gate.work.open();
    const isReplaced = moment.includes('error');
    const [ok, error] =
      protocol === 'HTTP/2' ? ['200  body', '503  {}'] : ['200 OK  body', '503 Service Unavailable  {}'];
    expect(await held.answer).toBe(isReplaced ? error : ok);
    await held.close();
    expect(outcome).toEqual(await outcomeOf(sent[protocol]!, call));
  });

  it.each(PROTOCOLS)('shows what an ended one of Node.js shows: %s', async (protocol) => {
    const [plain, held] = [await serve(protocol, false), await serve(protocol, true)];
    for (const { response } of [plain, held]) response.end('body');
    expect(shown(held.response)).toEqual(shown(plain.response));
    held.gate.work.open();
    await Promise.all([plain.answer, held.answer]);
    await eventually(() => expect(shown(held.response)).toEqual(shown(plain.response)));
    await Promise.all([plain.close(), held.close()]);
  });

  it.each(PROTOCOLS)('calls back for all calls: %s', async (protocol) => {
    const held = await serve(protocol, true);
    const called: unknown[] = [];
    const { response } = held;
    const call = (name: string) => CALLS[name]!(response, (error) => called.push(`${name} ${(error as Coded)?.code}`));
    call('end(callback)');
    call('end(callback)');
    call('end(chunk, callback)');
    call('write(chunk, callback)');
    await nextTurn();
    const late = [
      'end(chunk, callback) ERR_STREAM_WRITE_AFTER_END',
      'write(chunk, callback) ERR_STREAM_WRITE_AFTER_END',
    ];
    expect(called).toEqual(late);
    held.gate.work.open();
    await once(response, 'finish');
    call('end(callback)');
    await eventually(() => expect(called).toEqual([...late, ...Array(3).fill('end(callback) undefined')]));
    await held.close();
  });

  it.each(PROTOCOLS)('is as harmless when its client left before: %s', async (protocol) => {
    for (const name of Object.keys(CALLS)) {
      const outcomes = [];
      for (const isHeld of [false, true]) {
        const served = await serve(protocol, isHeld);
        const closed = once(served.response, 'close');
        served.leave();
        await closed;
        served.response.end('body');
        outcomes.push([shown(served.response), await outcomeOf(served, name)]);
        served.gate.work.open();
        await served.close();
      }
      expect(outcomes[1]).toEqual(outcomes[0]);
    }
  });
});

interface Coded {
  readonly code?: string;
}

@Controller()
class TwiceController {
  static ended: () => void;

  @Post('twice')
  twice(@Session() session: Session, @Res() reply: RawReply & { hijack?(): unknown }) {
    session.setAttribute('visited', true);
    reply.hijack?.();
    const response = rawOf(reply);
    response.end('first');
    setImmediate(() => {
      if (!response.finished) response.end('guarded');
      response.write('late');
      response.end('late');
      TwiceController.ended();
    });
  }
}

describe.each(['express', 'fastify', 'inject() of Fastify'])(
  'on %s, a handler that responds a second time',
  (where) => {
    it('does no harm while the first response is held', async () => {
      const { app, agent, store } = await startApp({
        platform: where === 'express' ? 'express' : 'fastify',
        controllers: [TwiceController],
      });
      const gate = store.gate('create');
      const ended = new Promise<void>((resolve) => (TwiceController.ended = resolve));
      const fastify = app.getHttpAdapter().getInstance() as { inject(options: object): Promise<{ body: string }> };
      const answer = where.startsWith('inject')
        ? fastify.inject({ method: 'POST', url: '/twice' }).then(({ body }) => body)
        : agent()
            .post('/twice')
            .then(({ text }) => text);
      await gate.reached();
      await ended;
      gate.open();
      expect(await answer).toBe('first');
    });
  },
);
