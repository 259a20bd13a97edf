import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { OpenConnections, SessionEndListener } from '../../src/http/open-connections.js';
import { MapSessionModule, MapSessionRepository, SessionModule, SessionStoreError } from '../../src/index.js';

LeakGuard.install();

/** A store whose next reply can be late, or an error. */
class LateRepository extends MapSessionRepository {
  #gate: Gate | undefined;
  loads = 0;

  holdNext(): Gate {
    return (this.#gate = new Gate());
  }

  failNext(): void {
    this.holdNext().fail(new SessionStoreError('The test has broken the store'));
  }

  protected override async load(ids: readonly string[]) {
    this.loads++;
    const records = await super.load(ids);
    const gate = this.#gate;
    this.#gate = undefined;
    await gate?.pass();
    return records;
  }
}

/** More than the pause before a search. */
const PAUSE = 1001;

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'performance', 'Date'] });
});
afterEach(() => {
  jest.useRealTimers();
});

async function start() {
  const repository = new LateRepository();
  const module = await Test.createTestingModule({ imports: [SessionModule.forRoot(), MapSessionModule.forRoot()] })
    .overrideProvider(MapSessionRepository)
    .useValue(repository)
    .compile();
  const connections = module.get(OpenConnections);
  const closed: string[] = [];
  /** A connection in a session. Returns the id of the session. */
  const connected = async () => {
    const session = repository.createSession();
    session.setAttribute('visits', 1);
    await session.save();
    connections.add({ close: (reason) => closed.push(`${session.id} ${reason}`) }, [session.id]);
    return session.id;
  };
  return { repository, module, listener: module.get(SessionEndListener), connections, connected, closed };
}

it('a gap that is reported during the search for ended sessions makes the search begin again', async () => {
  const { repository, module, listener, connected, closed } = await start();
  const id = await connected();
  const gate = repository.holdNext();
  listener.search();
  await jest.advanceTimersByTimeAsync(PAUSE);
  await gate.reached();
  // The reply that is on its way says that the session is alive.
  await repository.deleteById(id);
  listener.search();
  gate.open();
  await jest.advanceTimersByTimeAsync(PAUSE);
  expect(closed).toEqual([`${id} session ended`]);
  expect(jest.getTimerCount()).toBe(0);
  await module.close();
});

it('each gap makes one search, also after a store that failed, which closes what has ended and is over', async () => {
  jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
  const { repository, module, listener, connections, connected, closed } = await start();
  const alive = await connected();
  for (let gap = 1; gap <= 3; gap++) {
    const id = await connected();
    await repository.deleteById(id);
    repository.failNext();
    listener.search();
    await jest.advanceTimersByTimeAsync(PAUSE);
    expect(closed).toHaveLength(gap - 1);
    await jest.advanceTimersByTimeAsync(PAUSE);
    expect(closed.at(-1)).toBe(`${id} session ended`);
    expect([connections.ids, jest.getTimerCount()]).toEqual([[alive], 0]);
    const { loads } = repository;
    await jest.advanceTimersByTimeAsync(3 * PAUSE);
    expect([closed.length, repository.loads]).toEqual([gap, loads]);
  }
  await module.close();
  jest.restoreAllMocks();
});

it('a gap that is reported during the shutdown begins no search', async () => {
  const { repository, module, listener, connected } = await start();
  await connected();
  await module.close();
  const { loads } = repository;
  listener.search();
  await jest.advanceTimersByTimeAsync(3 * PAUSE);
  expect([repository.loads, jest.getTimerCount()]).toEqual([loads, 0]);
});
