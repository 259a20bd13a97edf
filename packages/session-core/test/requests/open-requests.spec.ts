import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Controller, Post } from '@nestjs/common';
import { Gate } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Session } from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { startApp, closeApps } from '../support/session.app.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

// As many as are loaded whole.
const PRESENTED = 5;
const REQUESTS = 3;

/** Remembers the sessions that it has looked up, without keeping them. */
class RememberingRepository extends GatedRepository {
  readonly found: WeakRef<object>[] = [];

  override async findByIds(ids: readonly string[]) {
    const sessions = await super.findByIds(ids);
    for (const session of sessions) if (session) this.found.push(new WeakRef(session));
    return sessions;
  }

  get kept(): number {
    collectGarbage();
    return this.found.filter((session) => session.deref()).length;
  }
}

@Controller()
class HeldController {
  static gate = new Gate();

  @Post('store')
  store(@Session() session: Session) {
    session.setAttribute('a', 1);
    return { id: session.id };
  }

  @Post('hold')
  async hold(@Session() session: Session) {
    await HeldController.gate.pass();
    session.signOut();
  }
}

afterEach(closeApps);

it('an open request keeps one session in memory, however many it presents, and still ends all of them', async () => {
  const store = new RememberingRepository();
  const { agent } = await startApp({ store, controllers: [HeldController] });
  const agents = Array.from({ length: PRESENTED }, agent);
  const responses = await Promise.all(agents.map((each) => each.post('/store')));
  const ids = responses.map((response) => response.json<{ id: string }>().id);
  const cookie = agents.map((each) => `SESSION=${each.cookie('SESSION')}`).join('; ');
  const held = Array.from({ length: REQUESTS }, () => agent().post('/hold', undefined, { headers: { cookie } }));
  await eventually(() => expect(store.found).toHaveLength(REQUESTS * PRESENTED));
  await eventually(() => expect(store.kept).toBe(REQUESTS));
  HeldController.gate.open();
  await Promise.all(held);
  expect(await store.findByIds(ids)).toEqual(ids.map(() => null));
});
