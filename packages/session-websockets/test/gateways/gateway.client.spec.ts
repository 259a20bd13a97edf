import type { IncomingMessage } from 'node:http';
import { Test } from '@nestjs/testing';
import { MapSessionModule, MapSessionRepository, SessionModule, SessionStoreError } from '@nest-session/core';
import { RequestSessions, TrackedSession } from '@nest-session/core/internal';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { OpenConnections } from '@nest-session/core/internal';
import { GatewayClient } from '../../src/gateways/gateway.client.js';

LeakGuard.install();

/** What happens while a client connects: the end of its session is told, or the client leaves. */
type Happening = 'ends' | 'leaves';
const MOMENTS = ['before the load', 'when the store is asked', 'when it has answered', 'when it is connected'] as const;
const NEVER = MOMENTS.length;

/** Each moment of an end with each moment at which the client leaves, in both orders where they are the same. */
const CASES = [...MOMENTS.keys(), NEVER].flatMap((end) =>
  [...MOMENTS.keys(), NEVER].flatMap((leave) =>
    (end === leave ? [true, false] : [true]).map((endsFirst) => ({ end, leave, endsFirst })),
  ),
);

/** A store whose calls wait at gates, before and after it looks. */
class GatedRepository extends MapSessionRepository {
  readonly asked = new Gate();
  readonly answered = new Gate();

  protected override async load(ids: readonly string[]) {
    await this.asked.pass();
    const records = await super.load(ids);
    await this.answered.pass();
    return records;
  }
}

const stored = async (repository: MapSessionRepository) => {
  const session = TrackedSession.of(repository.createSession());
  session.setAttribute('visits', 1);
  await session.save();
  return session;
};

const open = async ({ isAlone = true } = {}) => {
  const repository = new GatedRepository();
  const module = await Test.createTestingModule({ imports: [SessionModule.forRoot(), MapSessionModule.forRoot()] })
    .overrideProvider(MapSessionRepository)
    .useValue(repository)
    .compile();
  await module.init();
  const [session, other] = [await stored(repository), await stored(repository)];
  const tokens = isAlone ? [session] : [session, other];
  const headers = { cookie: tokens.map((each) => `SESSION=${each.tokenToSend!.reveal()}`).join('; ') };
  const request = { headers, url: '/', socket: {} } as unknown as IncomingMessage;
  const connections = module.get(OpenConnections, { strict: false });
  const client = new GatewayClient(module.get(RequestSessions, { strict: false }), request);
  return { module, repository, session, other, connections, client };
};

describe.each(CASES)(
  'a client whose session ends at moment $end, and which leaves at $leave,',
  ({ end, leave, endsFirst }) => {
    it(`is closed once if it is still there, and leaves nothing behind, ${endsFirst ? 'the end first' : 'the client first'}`, async () => {
      const { module, repository, session, connections, client } = await open();
      const { asked, answered } = repository;
      const hungUp: string[] = [];
      let isThere = true;
      const happenings: Record<Happening, () => Promise<void>> = {
        ends: async () => {
          await repository.deleteById(session.id);
          connections.close(session.id, 'session ended');
        },
        leaves: async () => {
          isThere = false;
          client.disconnect();
        },
      };
      const order: Happening[] = endsFirst ? ['ends', 'leaves'] : ['leaves', 'ends'];
      const at = async (moment: number) => {
        for (const each of order) if ((each === 'ends' ? end : leave) === moment) await happenings[each]();
      };
      await at(0);
      const loading = client.load();
      await asked.reached();
      await at(1);
      asked.open();
      await answered.reached();
      await at(2);
      answered.open();
      await loading;
      // A platform tells of a client although it has left meanwhile.
      client.connect((reason) => {
        hungUp.push(reason);
        isThere = false;
        client.disconnect();
      });
      await at(3);
      const hasEnded = end > 1 && end < NEVER;
      const wasThere = leave > end || (leave === end && endsFirst);
      // A load finds no session that has ended before: the client has none, and stays.
      expect(hungUp).toEqual(hasEnded && wasThere ? ['session ended'] : []);
      expect(connections.ids).toEqual(isThere && end === NEVER ? [session.id] : []);
      await module.close();
    });
  },
);

it('a client whose session cannot be loaded is refused, and leaves nothing behind, each time', async () => {
  const { module, repository, connections, client } = await open();
  repository.asked.fail(new SessionStoreError('The test has broken the store'));
  for (let attempt = 0; attempt < 3; attempt++) {
    await expect(client.load()).rejects.toThrow('could not be loaded');
    expect(connections.ids).toEqual([]);
  }
  await module.close();
});

it('a client that presents two sessions has that of its handshake in each message, and is closed with it', async () => {
  const { module, repository, session, other, connections, client } = await open({ isAlone: false });
  const hungUp: string[] = [];
  const loading = client.load();
  await repository.asked.reached();
  // The end of another session does not matter, whenever it is told.
  connections.close(other.id, 'session ended');
  repository.asked.open();
  repository.answered.open();
  await loading;
  expect(connections.ids).toEqual([session.id]);
  client.connect((reason) => hungUp.push(reason));
  for (let message = 0; message < 2; message++) {
    expect((await client.session())?.existing?.id).toBe(session.id);
  }
  // Nobody has been told of this yet.
  await repository.deleteById(session.id);
  for (let message = 0; message < 2; message++) expect(await client.session()).toBeUndefined();
  expect(hungUp).toEqual(['session ended']);
  expect(await repository.findById(other.id)).not.toBeNull();
  client.disconnect();
  expect(connections.ids).toEqual([]);
  await module.close();
});
