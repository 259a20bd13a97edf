import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Session } from '../../src/index.js';
import { STORE_FAILURE } from '../support/gated.repository.js';
import { type RawReply, rawOf } from '../support/raw.response.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
/** Continues what the handler left running. */
let goOn = () => {};
afterEach(() => {
  goOn();
  return closeApps();
});

let isDone: boolean;
let isClosed: boolean;
let refusal: Error | undefined;

@Controller()
class CartController {
  @Get('start')
  start(@Session() session: Session) {
    session.setAttribute('cart', []);
  }

  /** An `await` is missing: the response does not wait for the change. */
  @Get('add/:how')
  add(@Session() session: Session, @Param('how') how: string) {
    const later = new Promise<void>((resolve) => (goOn = resolve));
    isDone = false;
    void later.then(() => this.#change(session, how)).finally(() => (isDone = true));
    return how;
  }

  async #change(session: Session, how: string): Promise<void> {
    session.setAttribute('cart', ['apple']);
    if (how === 'saved') await session.save();
    if (how === 'refused') await session.save().catch((error: Error) => (refusal = error));
    if (how === 'set-twice') session.setAttribute('cart', ['pear']);
    if (how === 'saved-and-set') {
      await session.save();
      session.setAttribute('cart', ['pear']);
    }
  }

  @Get('stream')
  async stream(@Session() session: Session, @Res() reply: RawReply) {
    const response = rawOf(reply);
    [isDone, isClosed] = [false, false];
    response.once('close', () => (isClosed = true));
    response.write('begun');
    session.setAttribute('cart', ['apple']);
    await session.save();
    response.end();
    isDone = true;
  }

  @Post('in')
  signIn(@Session() session: Session) {
    session.signIn('ann');
  }

  /** Ends the session after the first byte, and goes on with the response until `goOn()`. */
  @Post('begun/:how')
  async endBegun(@Session() session: Session, @Param('how') how: string, @Res() reply: RawReply) {
    const response = rawOf(reply);
    const later = new Promise<void>((resolve) => (goOn = resolve));
    response.write('begun');
    end(session, how);
    await later;
    response.end();
  }

  /** Ends the session while the response waits for its save, and goes on with the response until `goOn()`. */
  @Post('waiting/:how')
  async endWaiting(@Session() session: Session, @Param('how') how: string, @Res() reply: RawReply) {
    const response = rawOf(reply);
    const later = new Promise<void>((resolve) => (goOn = resolve));
    session.setAttribute('cart', ['apple']);
    response.write('begun');
    end(session, how);
    await later;
    response.end();
  }

  /** Ends the session after the response. */
  @Post('over/:how')
  endOver(@Session() session: Session, @Param('how') how: string) {
    const later = new Promise<void>((resolve) => (goOn = resolve));
    void later.then(() => {
      if (how === 'changed before') session.setAttribute('cart', ['apple']);
      return new Promise(setImmediate).then(() => end(session, how));
    });
  }

  @Get('name')
  name(@Session() session: Session) {
    return { name: session.principalName ?? null };
  }

  @Get('read')
  read(@Session() session: Session) {
    return { cart: session.getAttribute('cart') };
  }
}

function end(session: Session, how: string): void {
  if (how === 'invalidate()') session.invalidate();
  else if (how === 'a timeout of 0') session.maxInactiveInterval = 0;
  else if (how === 'principalName') session.principalName = undefined;
  else session.signOut();
}

const LATE =
  /^warn Session \S+ was changed after the response to GET \/add\/\S+ had ended, so the change is lost unless/;

describe.each(['express', 'fastify'] as const)('a change after the end of the response, on %s', (platform) => {
  const base = { platform, controllers: [CartController] };

  it.each([
    ['set', 1, []],
    ['set-twice', 1, []],
    ['saved', 0, ['apple']],
    ['saved-and-set', 1, ['apple']],
  ])('is in the log unless it is saved: %s', async (how, lines, cart) => {
    const { log, agent } = await startApp(base);
    const client = agent();
    await client.get('/start');
    expect((await client.get(`/add/${how}?code=secret`)).text).toBe(how);
    // The response has closed, too: the next one needs its connection.
    expect((await client.get('/read')).json()).toEqual({ cart: [] });
    goOn();
    await eventually(() => expect(isDone).toBe(true));
    await eventually(() => expect(log.matching(LATE)).toHaveLength(lines));
    expect(log.matching(/secret/)).toEqual([]);
    expect((await client.get('/read')).json()).toEqual({ cart });
    expect(log.matching(LATE)).toHaveLength(lines);
  });

  it('is not in the log when its save fails, because the application has the error', async () => {
    const { log, agent, store } = await startApp(base);
    const client = agent();
    await client.get('/start');
    await client.get('/add/refused');
    await client.get('/read');
    store.break('update');
    goOn();
    await eventually(() => expect(isDone).toBe(true));
    expect(refusal).toBe(STORE_FAILURE);
    await new Promise(setImmediate);
    expect(log.matching(LATE)).toEqual([]);
  });
});

describe.each(['express', 'fastify'] as const)('a change after the first byte, on %s', (platform) => {
  it('is not in the log when the client leaves during its save', async () => {
    const { log, agent, store } = await startApp({ platform, controllers: [CartController] });
    const client = agent();
    await client.get('/start');
    const gate = store.gate('update');
    const leaving = new AbortController();
    const onHead = () => leaving.abort();
    await expect(client.get('/stream', { signal: leaving.signal, onHead })).rejects.toThrow();
    await eventually(() => expect(isClosed).toBe(true));
    gate.open();
    await eventually(() => expect(isDone).toBe(true));
    expect((await client.get('/read')).json()).toEqual({ cart: ['apple'] });
    expect(log.matching(/^warn/)).toEqual([]);
  });
});

const NOT_ENDED = /^error Session \S+ was ended after the response to POST \/begun\/\S+ had begun, and could not/;

describe.each(['express', 'fastify'] as const)('an end after the first byte, on %s', (platform) => {
  async function signedIn() {
    const started = await startApp({ platform, controllers: [CartController] });
    const client = started.agent();
    await client.post('/in');
    const { cookie } = client.headersFor('/name');
    const name = async () => (await started.agent().get('/name', { headers: { cookie } })).json<object>();
    expect(await name()).toEqual({ name: 'ann' });
    return { ...started, client, name };
  }

  const ways = ['signOut()', 'invalidate()', 'a timeout of 0', 'principalName'];

  it.each(ways)('is saved while the response goes on: %s', async (how) => {
    const { client, name, log } = await signedIn();
    const answer = client.post(`/begun/${encodeURIComponent(how)}`);
    await eventually(async () => expect(await name()).toEqual({ name: null }));
    goOn();
    expect((await answer).text).toBe('begun');
    await name();
    expect(log.matching(/^(warn|error)/)).toEqual([]);
  });

  it.each(ways)('is saved when the response has waited for another save: %s', async (how) => {
    const { client, name, log, store } = await signedIn();
    const gate = store.gate('update');
    const answer = client.post(`/waiting/${encodeURIComponent(how)}`);
    await gate.reached();
    gate.open();
    await eventually(async () => expect(await name()).toEqual({ name: null }));
    goOn();
    expect((await answer).text).toBe('begun');
    await name();
    expect(log.matching(/^(warn|error)/)).toEqual([]);
  });

  it.each([...ways, 'changed before'])('is saved after the end of the response: %s', async (how) => {
    const { client, name, log } = await signedIn();
    await client.post(`/over/${encodeURIComponent(how)}`);
    await name();
    goOn();
    await eventually(async () => expect(await name()).toEqual({ name: null }));
    expect(log.matching(/^(warn|error)/)).toHaveLength(how === 'changed before' ? 1 : 0);
  });

  it('is in the log as an error when the store fails, and is tried again when the response ends', async () => {
    const { client, name, log, store } = await signedIn();
    store.break('delete');
    const answer = client.post('/begun/signOut()');
    await eventually(() => expect(log.matching(NOT_ENDED)).toHaveLength(1));
    expect(await name()).toEqual({ name: 'ann' });
    store.repair();
    goOn();
    await answer;
    await eventually(async () => expect(await name()).toEqual({ name: null }));
    expect(log.matching(NOT_ENDED)).toHaveLength(1);
  });
});
