import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent } from '@nest-session/testing';
import { change } from './support/change.js';
import { DemoApplication } from './support/demo.application.js';
import { EventStream } from './support/event.stream.js';

LeakGuard.install();

describe('the failing handlers of the demo', () => {
  let demo: DemoApplication;

  beforeAll(async () => {
    demo = await DemoApplication.start();
  });
  afterAll(() => demo?.stop());

  const STEPS = ['attempt', 'failed', 'killed', 'dead-letter', 'replayed', 'mail'];
  const handled = (stream: EventStream) =>
    stream.journal.map(({ type }) => type).filter((type) => STEPS.includes(type));

  it.each(['session', 'order'])('end with one mail and the whole %s, also after a dead letter', async (end) => {
    const [agent, other] = [new HttpAgent(demo.origin), new HttpAgent(demo.origin)];
    await other.post('/cart', { name: 'pear' });
    await agent.post('/cart', { name: 'apple' });
    for (const [fault, visitor] of [['fails-always', agent] as const, ['fails-twice', other] as const]) {
      await change(visitor, 'POST', `/faults/${fault}`, { end });
      if (end === 'order') await change(visitor, 'POST', '/orders', { seconds: 4 });
    }
    const [stream, others] = [await EventStream.open(agent), await EventStream.open(other)];
    try {
      await eventually(() => expect(handled(stream)).toContain('dead-letter'), { timeout: 30_000 });
      await eventually(() => expect(handled(others)).toContain('mail'), { timeout: 30_000 });
      const failed = ['attempt', 'failed', 'attempt', 'failed', 'attempt'];
      expect(handled(stream)).toEqual([...failed, 'dead-letter']);
      expect(handled(others)).toEqual([...failed, 'mail']);

      const admin = new HttpAgent(demo.origin);
      const id = stream.journal.find(({ type }) => type === 'dead-letter')!['eventId'] as string;
      expect((await change(admin, 'POST', '/faults/replay/nothing')).status).toBe(404);
      expect((await change(admin, 'POST', `/faults/replay/${id}`)).status).toBe(204);
      await eventually(() =>
        expect(handled(stream)).toEqual([...failed, 'dead-letter', 'replayed', 'attempt', 'mail']),
      );
      expect(stream.journal.at(-1)).toMatchObject({ items: ['apple'], isRepeated: false });
      expect((await change(admin, 'POST', `/faults/replay/${id}`)).status).toBe(404);
    } finally {
      stream.close();
      others.close();
    }
  });
});
