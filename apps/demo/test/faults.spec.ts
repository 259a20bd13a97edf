import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent } from '@nest-session/testing';
import type { SessionView } from '../src/shop/session.controller.js';
import { change } from './support/change.js';
import { DemoApplication } from './support/demo.application.js';
import { EventStream } from './support/event.stream.js';

LeakGuard.install();

describe('the failures of the demo', () => {
  let demo: DemoApplication;
  let agent: HttpAgent;

  beforeAll(async () => {
    demo = await DemoApplication.start();
  });
  afterAll(() => demo?.stop());
  beforeEach(() => {
    agent = new HttpAgent(demo.origin);
  });

  it('are only those that its Redis and its number of instances allow', async () => {
    expect((await agent.get('/faults')).json()).toEqual({
      none: null,
      unheard: 'This works only with a Redis of the demo: start the demo without REDIS_URL.',
      killed: 'This needs two instances: npm start, without --watch and --instances 1',
      'fails-twice': null,
      'fails-always': null,
      frozen: 'This works only with a Redis of the demo: start the demo without REDIS_URL.',
    });
    for (const fault of ['unheard', 'killed', 'frozen']) {
      expect((await change(agent, 'POST', `/faults/${fault}`)).status).toBe(409);
    }
    expect((await agent.get('/session')).json()).toMatchObject({ maxInactiveInterval: 1800, items: [] });
  });

  it('write a mail once, however often the handler is called', async () => {
    await agent.post('/cart', { name: 'apple' });
    const { id } = (await agent.get('/session')).json<SessionView>();
    const { Outbox } = await import('../src/shop/outbox.js');
    const stream = await EventStream.open(agent);
    try {
      const event = { id: `expired-${id}`, sessionId: id };
      for (const item of ['apple', 'pear'])
        await demo.get(Outbox).send(event, { to: 'ann', text: 'Hello', items: [item] });
      await eventually(() => {
        const mails = stream.journal.filter(({ type }) => type === 'mail');
        expect(mails.map(({ isRepeated }) => isRepeated)).toEqual([false, true]);
      });
    } finally {
      stream.close();
    }
  });
});
