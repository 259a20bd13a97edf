import { DeadlineEvent, Deadlines } from '@nest-session/deadlines';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent } from '@nest-session/testing';
import type { JournalEntry } from '../src/engine-room/journal.js';
import type { Order } from '../src/shop/order.table.js';
import type { SessionView } from '../src/shop/session.controller.js';
import { change } from './support/change.js';
import { DemoApplication } from './support/demo.application.js';
import { EventStream } from './support/event.stream.js';

LeakGuard.install();

describe('the orders of the demo', () => {
  let demo: DemoApplication;
  let agent: HttpAgent;
  let stream: EventStream | undefined;

  beforeAll(async () => {
    demo = await DemoApplication.start();
  });
  afterAll(() => demo?.stop());
  beforeEach(() => {
    agent = new HttpAgent(demo.origin);
  });
  afterEach(() => stream?.close());

  async function fillCart(): Promise<void> {
    for (const name of ['apple', 'pear']) await agent.post('/cart', { name });
  }

  async function place(seconds: number): Promise<Order> {
    await fillCart();
    const response = await change(agent, 'POST', '/orders', { seconds });
    expect(response.status).toBe(201);
    stream = await EventStream.open(agent);
    return response.json<Order>();
  }

  const pay = () => change(agent, 'POST', '/orders/pay');
  const session = async () => (await agent.get('/session')).json<SessionView>();
  const told = (type: string) => stream!.journal.filter((entry) => entry.type === type);
  const states = () => told('order').map(({ order }) => (order as Order).state);

  /** Waits for the entry of one more request: then those from before have arrived. */
  async function allIsTold(): Promise<void> {
    await agent.get('/last');
    await eventually(() => expect(told('request').map(({ path }) => path)).toContain('/last'));
  }

  /** The kind of deadlines of the demo, and an event of it, as the library would deliver it once more. */
  async function dueAgain(order: Order, id: string) {
    const [{ paymentDue }, { Orders }] = [await import('../src/payment-due.js'), await import('../src/shop/orders.js')];
    const data = { sessionId: order.sessionId, to: 'ann', items: order.items };
    const event = { id, name: paymentDue.name, key: order.id, data, dueAt: order.dueAt, at: order.dueAt };
    await demo.get(Orders).cancel(new DeadlineEvent<typeof paymentDue>(event));
  }

  async function waiting(id: string) {
    const { paymentDue } = await import('../src/payment-due.js');
    return demo.get(Deadlines).get(paymentDue, id);
  }

  it('come from the cart, with a deadline that has what the mail needs', async () => {
    const order = await place(60);
    expect(order).toMatchObject({ state: 'unpaid', items: ['apple', 'pear'] });
    expect(await session()).toMatchObject({ items: [], order: order.id });
    const data = { sessionId: order.sessionId, to: 'a visitor', items: ['apple', 'pear'] };
    const deadline = await waiting(order.id);
    expect(deadline).toMatchObject({ key: order.id, data });
    expect(Math.abs(deadline!.dueAt - order.dueAt)).toBeLessThan(5000);
  });

  it('that are paid in time have no deadline left', async () => {
    const { id } = await place(60);
    expect((await pay()).json()).toMatchObject({ id, state: 'paid', instance: 'instance 1', answer: 'cancelled' });
    expect(await waiting(id)).toBeUndefined();
    await eventually(() => expect(states()).toEqual(['unpaid', 'paid']));
  });

  it('that nobody pays are cancelled with one mail, and cannot be paid any more', async () => {
    const { id, dueAt } = await place(1);
    await eventually(() => expect(told('mail')).toHaveLength(1));
    expect(told('mail')).toMatchObject([{ to: 'a visitor', items: ['apple', 'pear'], isRepeated: false }]);
    expect(states()).toEqual(['unpaid', 'cancelled']);
    const [due] = told('due') as (JournalEntry & { at: number; late: number })[];
    const { id: event, at, late } = due!;
    expect(at - late).toBeGreaterThanOrEqual(dueAt - 500);
    const cancelled = told('order').at(-1)!['order'];
    expect(cancelled).toMatchObject({ id, cancelledBy: event, late, instance: 'instance 1' });
    const refused = await pay();
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('Too late')]);
    expect(states()).toEqual(['unpaid', 'cancelled']);
  });

  it('end once, however a payment and the deadline meet', async () => {
    const { Orders } = await import('../src/shop/orders.js');
    for (let i = 0; i < 10; i++) {
      const order = await place(60);
      const both = [() => demo.get(Orders).pay(order.id), () => dueAgain(order, `due-${order.id}`)];
      const results = await Promise.allSettled((i % 2 === 0 ? both : both.toReversed()).map((each) => each()));
      const isPaid = results.every(({ status }) => status === 'fulfilled');
      await allIsTold();
      expect(states()).toEqual(['unpaid', ...(isPaid ? ['paid', 'paid'] : ['cancelled'])]);
      expect(told('mail')).toHaveLength(isPaid ? 0 : 1);
      stream!.close();
      agent = new HttpAgent(demo.origin);
    }
  });

  it('are cancelled with one mail, however often the handler is called', async () => {
    const order = await place(60);
    for (const id of ['first', 'first', 'another']) await dueAgain(order, `${id}-${order.id}`);
    await allIsTold();
    expect(told('mail').map(({ isRepeated }) => isRepeated)).toEqual([false, true]);
    const ends = told('order').map((entry) => (entry['order'] as Order).cancelledBy);
    expect(new Set(ends)).toEqual(new Set([undefined, `first-${order.id}`]));
  });

  it('that are paid, or do not exist, are left alone by their deadline', async () => {
    const order = await place(60);
    await pay();
    await dueAgain(order, `late-${order.id}`);
    await dueAgain({ ...order, id: 'never-placed' }, `lost-${order.id}`);
    await allIsTold();
    expect(told('due')).toHaveLength(2);
    expect(states()).toEqual(['unpaid', 'paid', 'paid']);
    expect(told('mail')).toEqual([]);
  });

  it('of before a sign-in end in view of the session after it', async () => {
    await place(2);
    stream!.close();
    await change(agent, 'POST', '/login', { name: 'ann' });
    stream = await EventStream.open(agent);
    await eventually(() => expect(told('mail')).toHaveLength(1));
    expect(states()).toEqual(['unpaid', 'cancelled']);
  });

  it('belong to the session that placed them', async () => {
    const { id } = await place(60);
    const stranger = new HttpAgent(demo.origin);
    await stranger.post('/cart', { name: 'plum' });
    expect((await change(stranger, 'POST', '/orders/pay', { id })).status).toBe(404);
    const others = await EventStream.open(stranger);
    try {
      await eventually(() => expect(others.journal.map(({ path }) => path)).toContain('/orders/pay'));
      expect(others.text).not.toContain(id);
    } finally {
      others.close();
    }
    expect(await waiting(id)).toBeDefined();
  });

  it('are refused without a cart, and with a time that is none', async () => {
    expect((await change(agent, 'POST', '/orders', { seconds: 30 })).status).toBe(409);
    await fillCart();
    for (const seconds of [0, 121, 1.5, '30', undefined]) {
      expect((await change(agent, 'POST', '/orders', { seconds })).status).toBe(400);
    }
    expect(await session()).toMatchObject({ items: ['apple', 'pear'] });
    expect(await session()).not.toHaveProperty('order');
  });
});
