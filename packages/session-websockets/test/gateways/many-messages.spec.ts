import type { IncomingMessage } from 'node:http';
import { Test } from '@nestjs/testing';
import {
  MapSessionModule,
  MapSessionRepository,
  OnSecurityEvent,
  type SecurityEvent,
  SessionModule,
} from '@nest-session/core';
import { RequestSessions, TrackedSession } from '@nest-session/core/internal';
import type { SessionChange } from '@nest-session/core/store';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { GatewayClient, MOST_SHARING, MOST_WAITING } from '../../src/gateways/gateway.client.js';

LeakGuard.install();

/** A store that counts what it is asked, and whose replies can be late. */
class CountingRepository extends MapSessionRepository {
  readonly loads: (readonly string[])[] = [];
  touches = 0;
  gate: Gate | undefined;

  protected override async load(ids: readonly string[]) {
    this.loads.push(ids);
    const records = await super.load(ids);
    await this.gate?.pass();
    return records;
  }

  protected override write(change: SessionChange) {
    if (change.kind === 'touch') this.touches++;
    return super.write(change);
  }
}

class Alarm {
  readonly heard: SecurityEvent[] = [];

  @OnSecurityEvent('limit-reached')
  ring(event: SecurityEvent) {
    this.heard.push(event);
  }
}

/** A client whose handshake presents several sessions, of which `session` is signed in. */
async function connected(others = 0) {
  const repository = new CountingRepository();
  const imports = [SessionModule.forRoot({ touchInterval: 0 }), MapSessionModule.forRoot()];
  const module = await Test.createTestingModule({ imports, providers: [Alarm] })
    .overrideProvider(MapSessionRepository)
    .useValue(repository)
    .compile();
  await module.init();
  const stored = async (principalName?: string) => {
    const session = TrackedSession.of(repository.createSession());
    session.setAttribute('visits', 1);
    session.principalName = principalName;
    await session.save();
    return session;
  };
  const session = await stored('ada');
  const companions = await Promise.all(Array.from({ length: others }, () => stored()));
  const cookie = [...companions, session].map(({ tokenToSend }) => `SESSION=${tokenToSend!.reveal()}`).join('; ');
  const request = { headers: { cookie }, url: '/', socket: {} } as unknown as IncomingMessage;
  const client = new GatewayClient(module.get(RequestSessions, { strict: false }), request);
  await client.load();
  const hungUp: string[] = [];
  client.connect((reason) => hungUp.push(reason));
  repository.loads.length = 0;
  repository.touches = 0;
  return { module, repository, session, companions, client, hungUp };
}

const atOnce = <T>(count: number, send: () => Promise<T>) => Promise.all(Array.from({ length: count }, send));

describe('the messages of a client', () => {
  it('that come at once share loads, each with a session of its own', async () => {
    const { module, repository, session, client, hungUp } = await connected();
    const held = await atOnce(2 * MOST_SHARING + 1, () => client.session());
    expect(repository.loads).toEqual([[session.id], [session.id], [session.id]]);
    expect(new Set(held.map((each) => each!.session)).size).toBe(held.length);
    held[0]!.session.setAttribute('visits', 2);
    expect(held[1]!.session.getAttribute('visits')).toBe(1);
    expect(hungUp).toEqual([]);
    await module.close();
  });

  it('that come while a load is under way wait for the next one, and see what was stored before them', async () => {
    const { module, repository, session, client } = await connected();
    const gate = (repository.gate = new Gate());
    const early = client.session();
    await gate.reached();
    session.setAttribute('visits', 2);
    await session.save();
    const late = atOnce(MOST_SHARING, () => client.session());
    expect(repository.loads).toHaveLength(1);
    gate.open();
    expect((await early)!.session.getAttribute('visits')).toBe(1);
    for (const held of await late) expect(held!.session.getAttribute('visits')).toBe(2);
    expect(repository.loads).toHaveLength(2);
    await module.close();
  });

  it('touch the session once for each load, unless they do not renew it', async () => {
    const { module, repository, client } = await connected();
    const [idle, ...others] = await atOnce(3, () => client.session());
    idle!.keepIdle();
    for (const held of [idle!, ...others]) await held!.touch!.send();
    expect(repository.touches).toBe(1);
    await module.close();
  });

  it('load the session of the client alone, of all that its handshake presented, and sign out of all', async () => {
    const { module, repository, session, companions, client } = await connected(63);
    const held = await client.session();
    expect(repository.loads).toEqual([[session.id]]);
    held!.session.signOut();
    await held!.save();
    expect(await repository.findByIds([session, ...companions].map(({ id }) => id))).toEqual(Array(64).fill(null));
    await module.close();
  });

  it('are handled until more wait than can, and then the client is closed once', async () => {
    const { module, repository, client, hungUp } = await connected();
    const gate = (repository.gate = new Gate());
    const waiting = atOnce(MOST_WAITING, () => client.session());
    await gate.reached();
    expect(hungUp).toEqual([]);
    const tooMany = atOnce(3, () => client.session());
    expect(hungUp).toEqual(['too many messages']);
    gate.open();
    expect(new Set([...(await waiting), ...(await tooMany)])).toEqual(new Set([undefined]));
    expect(repository.loads).toHaveLength(1);
    await module.close();
  });

  it('are one security event when more wait than can', async () => {
    const { module, repository, session, client } = await connected();
    const gate = (repository.gate = new Gate());
    const tooMany = atOnce(MOST_WAITING + 3, () => client.session());
    gate.open();
    await tooMany;
    await module.close();
    expect(module.get(Alarm).heard).toMatchObject([{ limit: 'waitingMessages', sessionId: session.id, suppressed: 0 }]);
  });

  it('may be as many as can wait, again and again', async () => {
    const { module, client, hungUp } = await connected();
    for (let burst = 0; burst < 2; burst++) {
      const held = await atOnce(MOST_WAITING, () => client.session());
      expect(held.every((each) => each!.existing)).toBe(true);
    }
    expect(hungUp).toEqual([]);
    await module.close();
  });

  it('of a session that has ended are not handled, and the client is closed once', async () => {
    const { module, repository, session, client, hungUp } = await connected();
    await repository.deleteById(session.id);
    expect(await atOnce(3, () => client.session())).toEqual([undefined, undefined, undefined]);
    expect(hungUp).toEqual(['session ended']);
    await module.close();
  });
});
