import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent } from '@nest-session/testing';
import type { Order } from '../src/shop/order.table.js';
import type { SessionView } from '../src/shop/session.controller.js';
import { change } from './support/change.js';
import { DemoApplication } from './support/demo.application.js';
import { EventStream, type Room } from './support/event.stream.js';

LeakGuard.install();

describe('the engine room of the demo', () => {
  let demo: DemoApplication;
  let agent: HttpAgent;
  const streams: EventStream[] = [];

  beforeAll(async () => {
    demo = await DemoApplication.start();
  });
  afterAll(() => demo?.stop());
  beforeEach(() => {
    agent = new HttpAgent(demo.origin);
  });
  afterEach(() => {
    for (const stream of streams.splice(0)) stream.close();
  });

  async function watch(of = agent): Promise<EventStream> {
    const stream = await EventStream.open(of);
    streams.push(stream);
    return stream;
  }

  const idOf = async (of: HttpAgent) => (await of.get('/session')).json<SessionView>().id;

  function seen(stream: EventStream, check: (room: Room) => void): Promise<void> {
    return eventually(() => {
      const { room } = stream;
      if (!room) throw new Error('Redis has not been read yet');
      check(room);
    });
  }

  it('shows A, B, C, the index, the stream and the group of the session', async () => {
    await agent.post('/cart', { name: 'apple' });
    await change(agent, 'POST', '/login', { name: 'ann' });
    const id = await idOf(agent);
    await seen(await watch(), (room) => {
      expect(room.a).toMatchObject({
        key: `nest:session:sessions:${id}`,
        fields: { 'sessionAttr:items': '["apple"]' },
      });
      expect(room.b).toMatchObject({ member: `expires:${id}` });
      expect(room.b!.key).toBe(`nest:session:expirations:${room.a.fields['bucket']}`);
      expect(room.c!.key).toBe(`nest:session:sessions:expires:${id}`);
      expect(room.a.timeToLive - room.c!.timeToLive).toBeGreaterThan(299_000);
      expect(room.indexes).toMatchObject([
        {
          key: expect.stringMatching(/:index:principal:SZFeDX1LQC4wF9AQvBwOg8rGx5fWwW5mNA_jJoaTpqE$/),
          member: id,
        },
      ]);
      expect(room.entries.map(([, fields]) => fields.slice(0, 4))).toEqual([
        ['type', 'id-changed', 'session', id],
        ['type', 'signed-in', 'session', id],
      ]);
      expect(room.groups).toMatchObject([{ name: 'default', lag: 0, consumers: [{}] }]);
    });
  });

  it('shows a change, and what the request cost, when a request makes it', async () => {
    await agent.post('/cart', { name: 'apple' });
    const stream = await watch();
    await agent.post('/cart', { name: 'pear' });
    await seen(stream, ({ a }) => expect(a.fields['sessionAttr:items']).toBe('["apple","pear"]'));
    const last = stream.journal.filter(({ type }) => type === 'request').at(-1);
    expect(last).toMatchObject({ method: 'POST', path: '/cart', status: 201 });
    const commands = last!['commands'] as { name: string; microseconds: number }[];
    // Every request counts as an access here, so a touch is sent as well.
    expect(commands.map(({ name }) => name)).toEqual([
      'HGETALL',
      'PTTL',
      'script touch-session',
      'script save-attributes',
    ]);
    expect(commands.every(({ microseconds }) => microseconds > 0)).toBe(true);
  });

  it('shows that C is gone and A is still there when the session has expired', async () => {
    await agent.post('/cart', { name: 'apple' });
    const [id, stream] = [await idOf(agent), await watch()];
    await change(agent, 'PUT', '/session', { maxInactiveInterval: 1 });
    await stream.next('expired', id);
    await seen(stream, (room) => {
      expect(room.c).toBeUndefined();
      expect(room.b).toBeUndefined();
      expect(room.a.fields).toMatchObject({ ended: 'expired', 'sessionAttr:items': '["apple"]' });
    });
    await eventually(() => {
      expect(stream.journal.filter(({ type }) => type === 'mail')).toMatchObject([
        { to: 'a visitor', items: ['apple'] },
      ]);
    });
  });

  it('shows the deadline of the order in its hash and in the list of what is due, and then in the events stream', async () => {
    await agent.post('/cart', { name: 'apple' });
    const { id } = (await change(agent, 'POST', '/orders', { seconds: 3 })).json<Order>();
    const stream = await watch();
    await seen(stream, ({ deadline }) => {
      expect(deadline).toMatchObject({ fields: { key: id, name: 'order.payment-due' }, entries: [] });
      const { key, fields, due } = deadline!;
      expect(due).toMatchObject({ key: 'nest:deadlines:due:order.payment-due', at: Number(fields['due']) });
      expect(key).toBe(`nest:deadlines:deadlines:${due!.member}`);
    });
    await seen(stream, ({ deadline }) => {
      const { fields, due, entries } = deadline!;
      expect(Object.keys(fields)).toEqual(['fired']);
      expect(due).toBeUndefined();
      expect(entries).toHaveLength(1);
      expect(entries[0]![1]).toEqual(expect.arrayContaining(['type', 'deadline', 'key', id, 'id', fields['fired']]));
    });
  });

  it('never shows anything of another visitor, also of one with the same account', async () => {
    const other = new HttpAgent(demo.origin, { headers: { 'user-agent': 'Secret browser' } });
    await other.post('/cart', { name: 'secret fruit' });
    await change(other, 'POST', '/orders', { seconds: 1 });
    await change(other, 'POST', '/login', { name: 'ann' });
    await agent.post('/cart', { name: 'apple' });
    await change(agent, 'POST', '/orders', { seconds: 1 });
    await change(agent, 'POST', '/login', { name: 'ann' });
    const [mine, theirs] = [await watch(), await watch(other)];
    const [id, otherId] = [await idOf(agent), await idOf(other)];
    await change(other, 'POST', '/logout');
    await theirs.next('deleted', otherId);
    await seen(mine, ({ a, entries, deadline }) => {
      expect(a.key).toContain(id);
      expect(entries).toHaveLength(2);
      expect(deadline!.entries).toHaveLength(1);
    });
    // What comes after the end of the other session was recorded.
    const looks = mine.text.split('"type":"room"').length;
    await eventually(() => expect(mine.text.split('"type":"room"').length).toBeGreaterThan(looks + 1));
    expect(mine.text).toContain('apple');
    for (const value of ['secret', 'Secret', otherId]) expect(mine.text).not.toContain(value);
  });

  it('shows nothing to a token that nobody has, such as an id', async () => {
    await agent.post('/cart', { name: 'apple' });
    const id = await idOf(agent);
    const stranger = new HttpAgent(demo.origin, { headers: { cookie: `SESSION=${id}` } });
    const nothing = await watch(stranger);
    await seen(nothing, ({ a, entries }) => expect([a.fields, entries]).toEqual([{}, []]));
    expect(nothing.journal).toEqual([]);
    expect(nothing.headers).not.toHaveProperty('set-cookie');
  });
});
