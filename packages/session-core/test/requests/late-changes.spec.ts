import { Controller, Get, Param, Res } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Session } from '../../src/index.js';
import { STORE_FAILURE } from '../support/gated.repository.js';
import { type RawReply, rawOf } from '../support/raw.response.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

/** Continues what the handler left running. */
let goOn: () => void;
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

  @Get('read')
  read(@Session() session: Session) {
    return { cart: session.getAttribute('cart') };
  }
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
