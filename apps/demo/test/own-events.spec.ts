import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent } from '@nest-session/testing';
import type { SessionView } from '../src/shop/session.controller.js';
import { change } from './support/change.js';
import { DemoApplication } from './support/demo.application.js';
import { EventStream } from './support/event.stream.js';

LeakGuard.install();

describe('the event streams of the demo', () => {
  it('tell each visitor of his own sessions only, and an old cookie nothing of the sign-in', async () => {
    const demo = await DemoApplication.start();
    let stop = () => demo.stop();
    try {
      const [ann, bob] = [new HttpAgent(demo.origin), new HttpAgent(demo.origin)];
      const idOf = async (agent: HttpAgent) => (await agent.get('/session')).json<SessionView>().id;
      await ann.post('/cart', { name: 'apple' });
      await bob.post('/cart', { name: 'pear' });
      const [annsId, bobsId] = [await idOf(ann), await idOf(bob)];
      const [annsEvents, bobsEvents] = [await EventStream.open(ann), await EventStream.open(bob)];
      await annsEvents.next('created', annsId);
      await bobsEvents.next('created', bobsId);

      await change(ann, 'POST', '/login', { name: 'ann' });
      const signedInId = await idOf(ann);
      const signedInEvents = await EventStream.open(ann);
      await change(ann, 'POST', '/logout');
      await signedInEvents.next('deleted', signedInId);

      // Ends the streams: what has not arrived then never does.
      await demo.stop();
      stop = async () => undefined;
      const streams = [annsEvents, bobsEvents, signedInEvents];
      await eventually(() => expect(streams.map(({ isClosed }) => isClosed)).toEqual([true, true, true]));
      const told = (stream: EventStream) => stream.entries.map(({ type, sessionId }) => [type, sessionId]);
      expect(told(annsEvents)).toEqual([['created', annsId]]);
      expect(told(bobsEvents)).toEqual([['created', bobsId]]);
      expect(told(signedInEvents)).toEqual([
        ['created', annsId],
        ['id-changed', signedInId],
        ['signed-in', signedInId],
        ['deleted', signedInId],
      ]);
    } finally {
      await stop();
    }
  });
});
