import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent } from '@nest-session/testing';
import type { SessionView } from '../src/shop/session.controller.js';
import { change } from './support/change.js';
import { DemoApplication } from './support/demo.application.js';
import { EventStream } from './support/event.stream.js';

LeakGuard.install();

describe('the failing handlers of the demo', () => {
  let demo: DemoApplication;
  let agent: HttpAgent;

  beforeAll(async () => {
    demo = await DemoApplication.start();
    agent = new HttpAgent(demo.origin);
  });
  afterAll(() => demo?.stop());

  const told = (stream: EventStream) =>
    stream.journal.flatMap(({ type }) => (['request', 'created'].includes(type) ? [] : [type]));

  it('end with one mail and the whole cart, also after a dead letter', async () => {
    const other = new HttpAgent(demo.origin);
    await other.post('/cart', { name: 'pear' });
    await agent.post('/cart', { name: 'apple' });
    await change(agent, 'POST', '/faults/fails-always');
    await change(other, 'POST', '/faults/fails-twice');
    const { id } = (await agent.get('/session')).json<SessionView>();
    const [stream, others] = [await EventStream.open(agent), await EventStream.open(other)];
    try {
      await eventually(() => expect(told(stream)).toContain('dead-letter'), { timeout: 30_000 });
      await eventually(() => expect(told(others)).toContain('mail'), { timeout: 30_000 });
      const failed = ['attempt', 'failed', 'attempt', 'failed', 'attempt'];
      const handled = (each: EventStream) => told(each).filter((type) => !['armed', 'expired'].includes(type));
      expect(handled(stream)).toEqual([...failed, 'dead-letter']);
      expect(handled(others)).toEqual([...failed, 'mail']);

      const admin = new HttpAgent(demo.origin);
      expect((await change(admin, 'POST', '/faults/replay/nobody')).status).toBe(404);
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
