import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { DetachedSession } from '../../src/http/detached-session.js';
import { SessionExtension } from '../../src/http/session-extension.js';
import { LogRecorder } from '@nest-session/test-infrastructure';
import { Logger } from '@nestjs/common';
import { GatedRepository, STORE_FAILURE } from '../support/gated.repository.js';

beforeAll(() => Logger.overrideLogger(new LogRecorder()));

async function start() {
  const request = new IncomingMessage(new Socket());
  const repository = new GatedRepository();
  const { id } = await storedIn(repository);
  const loaded = await repository.findById(id);
  const parts = { repository, extension: new SessionExtension() };
  const detached = new DetachedSession(parts, request, { loaded });
  const visit = (count: number) => detached.session.setAttribute('visits', count);
  const visits = async () => (await repository.findById(id))?.getAttribute('visits');
  return { repository, detached, visit, visits };
}

async function storedIn(repository: GatedRepository) {
  const session = repository.createSession();
  session.setAttribute('visits', 0);
  await session.save();
  return session;
}

describe('DetachedSession', () => {
  it('saves again and again, and has nothing to save in between', async () => {
    const { detached, visit, visits } = await start();
    for (let count = 1; count <= 3; count++) {
      visit(count);
      await detached.saveChanges();
      expect(detached.saveChanges()).toBeUndefined();
      expect(await visits()).toBe(count);
    }
  });

  it('lets nobody become the user of its session, and anybody leave it', async () => {
    const { repository, detached } = await start();
    const { session } = detached;
    expect(() => session.signIn('ann')).toThrow(/over an open connection/);
    expect(() => (session.principalName = 'ann')).toThrow(/over an open connection/);
    const renamed = (await repository.findById(session.id))!;
    renamed.principalName = 'ann';
    await renamed.save();
    const parts = { repository, extension: new SessionExtension() };
    const loaded = await repository.findById(session.id);
    const later = new DetachedSession(parts, detached.request, { loaded });
    expect(() => (later.session.principalName = 'bob')).toThrow(/over an open connection/);
    later.session.principalName = 'ann';
    later.session.principalName = undefined;
    await later.saveChanges();
    expect((await repository.findById(session.id))!.principalName).toBeUndefined();
  });

  it('waits for each save in progress, even if an earlier one has finished', async () => {
    const { repository, detached, visit, visits } = await start();
    for (let count = 1; count <= 9; count += 3) {
      const gates = [repository.gate('update')];
      visit(count);
      const first = detached.saveChanges();
      await gates[0]!.reached();
      visit(count + 1);
      const second = detached.saveChanges();
      gates.push(repository.gate('update'));
      gates[0]!.open();
      await first;
      await gates[1]!.reached();
      // Nothing else has changed, but the change before is not stored yet.
      const third = detached.saveChanges();
      expect(third).toBeDefined();
      gates[1]!.open();
      await Promise.all([second, third]);
      expect(await visits()).toBe(count + 1);
      repository.repair();
    }
  });

  it('shares the failure of a save with all that wait for it, even if an earlier one has finished', async () => {
    const { repository, detached, visit, visits } = await start();
    const first = repository.gate('update');
    visit(1);
    const saves = [detached.saveChanges()];
    await first.reached();
    visit(2);
    saves.push(detached.saveChanges());
    const second = repository.gate('update');
    first.open();
    await saves[0];
    await second.reached();
    saves.push(detached.saveChanges(), detached.saveChanges());
    second.fail(STORE_FAILURE);
    for (const saving of saves.slice(1)) await expect(saving).rejects.toBe(STORE_FAILURE);
    expect(repository.calls.filter((call) => call === 'update')).toHaveLength(2);
    repository.repair();
    expect(await visits()).toBe(1);
  });

  it('tries no save again after one that failed: each later one has the same error', async () => {
    const { repository, detached, visit, visits } = await start();
    repository.break('update');
    visit(1);
    const saves = [detached.saveChanges(), detached.saveChanges()];
    for (const saving of saves) await expect(saving).rejects.toBe(STORE_FAILURE);
    repository.repair();
    for (let again = 0; again < 2; again++) {
      await expect(detached.saveChanges()).rejects.toBe(STORE_FAILURE);
      visit(2 + again);
      await expect(detached.saveChanges()).rejects.toBe(STORE_FAILURE);
    }
    expect(await visits()).toBe(0);
    expect(repository.calls.filter((call) => call === 'update')).toHaveLength(1);
  });
});
