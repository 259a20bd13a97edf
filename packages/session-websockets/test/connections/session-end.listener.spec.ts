import { Test } from '@nestjs/testing';
import { MapSessionRepository, SessionRepository } from '@nest-session/core';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { OpenConnections } from '../../src/connections/open-connections.js';
import { SessionEndListener } from '../../src/connections/session-end.listener.js';

LeakGuard.install();

/** A store whose first reply is late. */
class LateRepository extends MapSessionRepository {
  readonly gate = new Gate();
  #loads = 0;

  protected override async load(ids: readonly string[]) {
    const records = await super.load(ids);
    if (this.#loads++ === 0) await this.gate.pass();
    return records;
  }
}

it('a gap that is reported during the search for ended sessions makes the search begin again', async () => {
  const repository = new LateRepository();
  const module = await Test.createTestingModule({
    providers: [SessionEndListener, OpenConnections, { provide: SessionRepository, useValue: repository }],
  }).compile();
  const listener = module.get(SessionEndListener);
  const session = repository.createSession();
  session.setAttribute('visits', 1);
  await session.save();
  const closed = new Promise((close) => module.get(OpenConnections).add({ close }, [session.id]));

  listener.search();
  await repository.gate.reached();
  // The reply that is on its way says that the session is alive.
  await repository.deleteById(session.id);
  listener.search();
  repository.gate.open();

  expect(await closed).toBe('session ended');
  await module.close();
});
