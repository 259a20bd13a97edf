import { type AttributeSerializer, JsonAttributeSerializer } from '@nest-session/core';
import { DevalueAttributeSerializer } from '@nest-session/core/devalue';
import { RedisSessionRepository } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

let server: RedisServer;
let app: App;
let sessions: RedisSessionRepository;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterEach(() => app.stop());
afterAll(() => server.stop());

async function start(serializer?: AttributeSerializer): Promise<void> {
  app = await App.start({ redis: { url: server.url, ...(serializer ? { serializer } : {}) } });
  sessions = app.nest.get(RedisSessionRepository, { strict: false });
}

/** The value of an attribute that a session was stored with, as another request reads it. */
async function restored(value: unknown): Promise<unknown> {
  const session = sessions.createSession();
  session.setAttribute('value', value);
  await session.save();
  return (await sessions.findById(session.id))!.getAttribute('value');
}

describe('a value in Redis', () => {
  it('comes back without its undefined members', async () => {
    await start();
    expect(await restored({ agent: undefined, ip: '::1' })).toStrictEqual({ ip: '::1' });
  });

  it('is not written again after a read of a session that was stored with undefined members', async () => {
    await start();
    const session = sessions.createSession();
    session.setAttribute('device', { agent: undefined, ip: '::1' });
    await session.save();
    const again = (await sessions.findById(session.id))!;
    const device = again.getAttribute<{ agent?: string }>('device')!;
    device.agent = undefined;
    expect(again).toHaveProperty('isDirty', false);
    device.agent = 'curl';
    await again.save();
    expect((await sessions.findById(session.id))!.getAttribute('device')).toEqual({ agent: 'curl', ip: '::1' });
  });

  it('may be a Date, a Map, a Set or a BigInt with the devalue serializer', async () => {
    await start(new DevalueAttributeSerializer());
    const value = { at: new Date(5), counts: new Map([['a', 1n]]), tags: new Set(['x']) };
    expect(await restored(value)).toStrictEqual(value);
    expect(await restored(new Date(7))).toStrictEqual(new Date(7));
  });

  it('is saved when a Date or a Map in it was changed in place', async () => {
    await start(new DevalueAttributeSerializer());
    const session = sessions.createSession();
    session.setAttribute('value', { at: new Date(5), counts: new Map([['a', 1]]) });
    await session.save();
    const again = (await sessions.findById(session.id))!;
    const value = again.getAttribute<{ at: Date; counts: Map<string, number> }>('value')!;
    value.at.setTime(6);
    value.counts.set('b', 2);
    await again.save();
    const expected = { at: new Date(6), counts: new Map(Object.entries({ a: 1, b: 2 })) };
    expect((await sessions.findById(session.id))!.getAttribute('value')).toStrictEqual(expected);
  });

  it('that JSON stored is found, and can be indexed, after a change to the devalue serializer', async () => {
    await start(new JsonAttributeSerializer());
    const session = sessions.createSession();
    session.principalName = 'ann';
    session.setAttribute('value', [1, 2]);
    await session.save();
    await app.stop();
    await start(new DevalueAttributeSerializer());
    const [found] = await sessions.findByPrincipalName('ann');
    expect(found?.getAttribute('value')).toEqual([1, 2]);
  });
});
