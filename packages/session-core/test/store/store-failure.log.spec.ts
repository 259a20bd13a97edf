import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import {
  MapSessionRepository,
  PRINCIPAL_NAME_INDEX_NAME,
  SessionStateError,
  SessionStoreError,
} from '../../src/index.js';
import type { SessionChange } from '../../src/store.js';
import { StoreFailureLog } from '../../src/repository/store-calls.js';

const lines: string[] = [];
const record = (...args: unknown[]) => void lines.push(args.join(' '));
Logger.overrideLogger({ log: record, warn: record, error: record });
beforeEach(() => void lines.splice(0));

it('logs once that the store fails and once that it works again, at each outage', () => {
  jest.useFakeTimers();
  const log = new StoreFailureLog();
  for (let outage = 1; outage <= 2; outage++) {
    lines.length = 0;
    for (let i = 0; i < 3; i++) {
      log.failed(new SessionStoreError('no reply'), 'other');
      jest.advanceTimersByTime(4999);
      log.succeeded('other');
    }
    jest.advanceTimersByTime(1);
    for (let i = 0; i < 3; i++) log.succeeded('other');
    expect(lines).toEqual([
      expect.stringMatching(/^The session store failed.*: "no reply"/),
      expect.stringMatching(/^The session store works again after 3 failed calls/),
    ]);
  }
  jest.useRealTimers();
});

it('logs that the store works again only when a save succeeds, if saves had failed', () => {
  jest.useFakeTimers();
  const log = new StoreFailureLog();
  log.failed(new SessionStoreError('full'), 'save');
  jest.advanceTimersByTime(5000);
  expect(log.succeeded('other')).toBe(false);
  expect(lines).toHaveLength(1);
  expect(log.succeeded('save')).toBe(true);
  expect(lines.at(-1)).toMatch(/^The session store works again after 1 failed call\b/);
  jest.useRealTimers();
});

it('logs each further reason of a failure once, also when reasons alternate, and ten at most', () => {
  const log = new StoreFailureLog();
  const full = (script: string) => `Redis failed: OOM command not allowed when used memory > 'maxmemory'. ${script}`;
  const reasons = ['no reply within 1000 ms', 'no reply within 200 ms', full('script: 1a'), full('script: 2b')];
  for (const reason of [...reasons, ...reasons]) log.failed(new SessionStoreError(reason), 'save');
  expect(lines).toEqual([
    expect.stringMatching(/^The session store failed.*: "no reply within 1000 ms"/),
    expect.stringMatching(/^The session store still fails, for another reason: "Redis failed: OOM/),
  ]);
  for (const letter of 'abcdefghijklmnopqrstuvwxyz') log.failed(new SessionStoreError(letter), 'save');
  expect(lines).toHaveLength(10);
});

it('logs the reason of a failure without its cause, which may quote stored values', () => {
  const cause = Object.assign(new Error('HSET session cart secret'), { command: ['HSET', 'secret'] });
  new StoreFailureLog().failed(new SessionStoreError('no reply', { cause }), 'other');
  expect(lines).toHaveLength(1);
  expect(lines[0]).not.toContain('secret');
});

it.each<
  [
    string,
    (repository: MapSessionRepository, session: ReturnType<MapSessionRepository['createSession']>) => Promise<unknown>,
  ]
>([
  ['load', (repository, { id }) => repository.findById(id)],
  ['save', (_, session) => (session.setAttribute('a', 2), session.save())],
  ['update', (_, session) => session.updateAttribute('a', () => 2)],
  ['touch', (repository, session) => repository.touch(session)],
  ['look-up', (repository) => repository.findByPrincipalName('ann')],
  [
    'list',
    async (repository) => {
      for await (const _session of repository.listByIndex(PRINCIPAL_NAME_INDEX_NAME, 'ann')) return;
    },
  ],
  ['count', (repository) => repository.countByIndex(PRINCIPAL_NAME_INDEX_NAME, 'ann')],
  ['end of many', (repository) => repository.deleteByIndex(PRINCIPAL_NAME_INDEX_NAME, 'ann')],
])('logs a %s that fails', async (_, call) => {
  const repository = new BreakableRepository();
  const session = repository.createSession();
  session.setAttribute('a', 1);
  await session.save();
  repository.isBroken = true;
  await expect(call(repository, session)).rejects.toThrow(SessionStoreError);
  expect(lines).toEqual([expect.stringMatching(/^The session store failed.*: "The store failed: Error"/)]);
});

it('goes on logging nothing while a full store loads, touches and ends sessions, but saves none', async () => {
  jest.useFakeTimers();
  const repository = new FullRepository();
  const session = repository.createSession();
  session.setAttribute('a', 1);
  await session.save();
  repository.isFull = true;
  session.setAttribute('a', 2);
  await expect(session.save()).rejects.toThrow(SessionStoreError);
  jest.advanceTimersByTime(5000);
  await repository.findById(session.id);
  await repository.touch(session);
  await repository.deleteById(session.id);
  expect(lines).toHaveLength(1);
  repository.isFull = false;
  const other = repository.createSession();
  other.setAttribute('a', 1);
  await other.save();
  expect(lines.at(-1)).toMatch(/^The session store works again/);
  jest.useRealTimers();
});

class FullRepository extends MapSessionRepository {
  isFull = false;

  protected override write(change: SessionChange) {
    const grows = change.kind === 'create' || change.kind === 'update';
    return this.isFull && grows ? broken() : super.write(change);
  }
}

class BreakableRepository extends MapSessionRepository {
  isBroken = false;

  protected override load(ids: readonly string[]) {
    return this.isBroken ? broken() : super.load(ids);
  }

  protected override write(change: SessionChange) {
    return this.isBroken ? broken() : super.write(change);
  }

  protected override lookUp(indexName: string, value: string) {
    return this.isBroken ? broken() : super.lookUp(indexName, value);
  }
}

async function broken(): Promise<never> {
  throw new Error('on purpose');
}

it('takes what a store never does for no failure, and lets its error reach the caller', async () => {
  class ReadOnly extends MapSessionRepository {
    protected override write(): Promise<never> {
      return Promise.reject(new SessionStateError('This store is read only'));
    }
  }
  const sessions = new ReadOnly();
  const session = sessions.createSession();
  session.setAttribute('cart', 'full');
  await expect(sessions.save(session)).rejects.toThrow(new SessionStateError('This store is read only'));
  expect(lines).toEqual([]);
});
