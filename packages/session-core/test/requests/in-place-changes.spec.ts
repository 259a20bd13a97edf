import { Controller, Get, Post, Res } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { JsonAttributeSerializer, Session } from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { type RawReply, rawOf } from '../support/raw.response.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

/** Counts how often a value is decoded, and compared with its text. */
class CountingSerializer extends JsonAttributeSerializer {
  counts = { decoded: 0, compared: 0, encoded: 0 };

  override serialize(value: unknown): string {
    this.counts.encoded++;
    return super.serialize(value);
  }

  override deserialize(text: string): unknown {
    this.counts.decoded++;
    return super.deserialize(text);
  }

  override hasText(value: unknown, text: string): boolean {
    this.counts.compared++;
    return super.hasText(value, text);
  }
}

@Controller()
class ListController {
  @Post()
  create(@Session() session: Session) {
    session.setAttribute('list', ['a']);
  }

  @Get()
  read(@Session() session: Session) {
    return session.getAttribute('list');
  }

  @Get('nothing')
  nothing(@Session() session: Session) {
    return session.attributeNames;
  }

  /** Responds later, by an object that it has kept. */
  @Get('later')
  later(@Session() session: Session, @Res() reply: RawReply) {
    const list = session.getRequiredAttribute<string[]>('list');
    setImmediate(() => {
      list.push('later');
      rawOf(reply).end('done');
    });
  }

  /** Responds in a promise that nobody waits for, by an object that it reads again. */
  @Get('unawaited')
  unawaited(@Session() session: Session, @Res() reply: RawReply) {
    session.getRequiredAttribute<string[]>('list');
    void (async () => {
      for (let i = 0; i < 100; i++) await Promise.resolve();
      session.getRequiredAttribute<string[]>('list').push('unawaited');
      rawOf(reply).end('done');
    })();
  }
}

describe.each(['express', 'fastify'] as const)('on %s, an object that a request reads', (platform) => {
  async function start() {
    const serializer = new CountingSerializer();
    const store = new GatedRepository({ serializer });
    const { agent } = await startApp({ platform, controllers: [ListController], store });
    const client = agent();
    await client.post('/');
    serializer.counts = { decoded: 0, compared: 0, encoded: 0 };
    return { client, serializer };
  }

  it('is decoded once and compared once, and one that it does not read is neither', async () => {
    const { client, serializer } = await start();
    expect((await client.get('/nothing')).json()).toEqual(['list']);
    expect(serializer.counts).toEqual({ decoded: 0, compared: 0, encoded: 0 });
    expect((await client.get('/')).json()).toEqual(['a']);
    expect(serializer.counts).toEqual({ decoded: 1, compared: 1, encoded: 0 });
  });

  it.each(['later', 'unawaited'])('is saved when the handler changes it after it has returned: %s', async (how) => {
    const { client } = await start();
    expect((await client.get(`/${how}`)).text).toBe('done');
    expect((await client.get('/')).json()).toEqual(['a', how]);
  });
});
