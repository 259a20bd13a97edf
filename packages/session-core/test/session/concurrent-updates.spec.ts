import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { eventually } from '@nest-session/testing';
import { SessionConflictError, SessionStoreError } from '../../src/errors/session.errors.js';
import { ClientDisconnectedError, type Session } from '../../src/index.js';
import { type SecurityEvent, SecurityEvents } from '../../src/security-events/security-events.js';
import { ConcurrentUpdates } from '../../src/session/concurrent-updates.js';
import { TrackedSession } from '../../src/session/tracked-session.js';
import { GatedRepository, STORE_FAILURE } from '../support/gated.repository.js';
import { RecordingWriter } from '../support/recording.writer.js';

const afterPromises = () => new Promise((resolve) => setImmediate(resolve));
const increment = (n = 0) => n + 1;

describe('updates of an attribute', () => {
  let repository: GatedRepository;

  beforeEach(() => {
    repository = new GatedRepository();
  });

  async function stored(attributes: Record<string, unknown>): Promise<string> {
    const session = repository.createSession();
    for (const [name, value] of Object.entries(attributes)) session.setAttribute(name, value);
    await repository.save(session);
    repository.calls.length = 0;
    return session.id;
  }

  function loads(id: string, count: number): Promise<Session[]> {
    return Promise.all(Array.from({ length: count }, async () => (await repository.findById(id))!));
  }

  const updates = () => repository.calls.filter((call) => call === 'update').length;

  it('by many requests are made together while one is written, and none is lost', async () => {
    const id = await stored({ n: 0 });
    const sessions = await loads(id, 100);
    const results = await Promise.all(sessions.map((session) => session.updateAttribute<number>('n', increment)));
    expect(results).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
    // One alone, and the others by 32.
    expect(updates()).toBe(5);
    const [session] = await loads(id, 1);
    expect(session!.getAttribute('n')).toBe(100);
  });

  it('by many requests do not see changes in place of each other', async () => {
    const sessions = await loads(await stored({ items: [{ n: 0 }] }), 3);
    const results = await Promise.all(
      sessions.map((session) =>
        session.updateAttribute<{ n: number }[]>('items', (items = []) => {
          items[0]!.n++;
          return items;
        }),
      ),
    );
    expect(results).toEqual([[{ n: 1 }], [{ n: 2 }], [{ n: 3 }]]);
    expect(sessions.map((session) => session.getAttribute('items'))).toEqual(results);
  });

  it('wait only for those of the same attribute and session', async () => {
    const [one, other] = [await stored({ n: 0 }), await stored({ n: 0 })];
    const [first, second, third] = await loads(one, 3);
    const [elsewhere] = await loads(other, 1);
    const gate = repository.gate('update');
    const results = [
      first!.updateAttribute('n', increment),
      second!.updateAttribute('n', increment),
      third!.updateAttribute('m', increment),
      elsewhere!.updateAttribute('n', increment),
    ];
    await afterPromises();
    expect(updates()).toBe(3);
    gate.open();
    await expect(Promise.all(results)).resolves.toEqual([1, 2, 1, 1]);
  });

  it('also keep what another request had set before its update', async () => {
    const [setting, updating] = await loads(await stored({ n: 0 }), 2);
    setting!.setAttribute('n', 10);
    const results = [setting!, updating!].map((session) => session.updateAttribute<number>('n', increment));
    await expect(Promise.all(results)).resolves.toEqual([11, 12]);
  });

  it('remove the attribute for the next one', async () => {
    const sessions = await loads(await stored({ n: 1 }), 4);
    const seen: unknown[] = [];
    const next: Record<number, number | undefined> = { 0: 2, 1: undefined, 2: 3, 3: undefined };
    const results = sessions.map((session, i) =>
      session.updateAttribute<number>('n', (n) => {
        seen.push(n);
        return next[i];
      }),
    );
    await expect(Promise.all(results)).resolves.toEqual([2, undefined, 3, undefined]);
    expect(seen).toEqual([1, 2, undefined, 3]);
    const [session] = await loads(sessions[0]!.id, 1);
    expect(session!.attributeNames).toEqual([]);
  });

  it('renew the idle timeout unless all that are made together keep the session idle', async () => {
    const id = await stored({ n: 0 });
    const idleOf = async (idle: boolean[]) => {
      const sessions = await loads(id, idle.length);
      idle.forEach((isIdle, i) => isIdle && TrackedSession.of(sessions[i]!).keepIdle());
      repository.changes.length = 0;
      await Promise.all(sessions.map((session) => session.updateAttribute<number>('n', increment)));
      return repository.changes.map((change) => 'keepsIdle' in change);
    };
    expect(await idleOf([false, true, true])).toEqual([false, true]);
    expect(await idleOf([false, true, false])).toEqual([false, false]);
  });

  it('go on when the functions of other requests throw, or return what cannot be stored', async () => {
    const sessions = await loads(await stored({ n: 0 }), 6);
    const refuse = (): never => {
      throw new Error('changed its mind');
    };
    const functions = [refuse, increment, refuse, () => new Date() as unknown as number, increment, refuse];
    const results = await Promise.allSettled(
      sessions.map((session, i) => session.updateAttribute<number>('n', functions[i]!)),
    );
    expect(results.map((each) => (each.status === 'fulfilled' ? each.value : 'failed'))).toEqual([
      'failed',
      1,
      'failed',
      'failed',
      2,
      'failed',
    ]);
    const [session] = await loads(sessions[0]!.id, 1);
    expect(session!.getAttribute('n')).toBe(2);
  });

  it('throw only because of what is stored', async () => {
    const sessions = await loads(await stored({ tickets: 1 }), 3);
    const look = (tickets = 0) => tickets;
    const take = (tickets = 0) => {
      if (tickets === 0) throw new Error('sold out');
      return tickets - 1;
    };
    const gate = repository.gate('update');
    const results = [look, take, take].map((each, i) => sessions[i]!.updateAttribute<number>('tickets', each));
    // So the last ticket is not taken.
    gate.fail(STORE_FAILURE);
    const settled = await Promise.allSettled(results);
    expect(settled).toEqual(Array(3).fill({ status: 'rejected', reason: STORE_FAILURE }));
  });

  it('fail together when the store fails', async () => {
    const id = await stored({ n: 0 });
    const gate = repository.gate('update');
    const results = (await loads(id, 20)).map((session) => session.updateAttribute<number>('n', increment));
    gate.fail(STORE_FAILURE);
    const settled = await Promise.allSettled(results);
    expect(settled.map((each) => each.status === 'rejected' && (each.reason as unknown))).toEqual(
      Array(20).fill(STORE_FAILURE),
    );
    // The first one, and the others together.
    expect(updates()).toBe(2);
    repository.repair();
    const [session] = await loads(id, 1);
    await expect(session!.updateAttribute<number>('n', increment)).resolves.toBe(1);
  });

  it('are made one by one where the session has no room for all of them, so that each that fits is made', async () => {
    repository = new GatedRepository({ maxSessionSize: 1000 });
    const id = await stored({ items: [] });
    const sessions = await loads(id, 4);
    const [other] = await loads(id, 1);
    other!.setAttribute('other', 'x'.repeat(800));
    await repository.save(other!);
    const add =
      (length: number) =>
      (items: string[] = []) => [...items, 'x'.repeat(length)];
    const results = [1, 50, 500, 20].map((length, i) => sessions[i]!.updateAttribute<string[]>('items', add(length)));
    const settled = await Promise.allSettled(results);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(settled[2]).toMatchObject({ reason: { bound: 'maxSessionSize' } });
    const [session] = await loads(id, 1);
    expect(session!.getAttribute<string[]>('items')!.map(({ length }) => length)).toEqual([1, 50, 20]);
  });

  it('by the old id of a session do not start from what was stored since it was rotated', async () => {
    const [rotating, late] = await loads(await stored({ n: 'old' }), 2);
    const seen: unknown[] = [];
    rotating!.changeSessionId();
    await rotating!.save();
    const gate = repository.gate('update');
    const secret = rotating!.updateAttribute('n', () => 'secret');
    const answer = late!.updateAttribute('n', (current) => {
      seen.push(current);
      return 'late';
    });
    gate.open();
    await expect(secret).resolves.toBe('secret');
    await expect(answer).resolves.toBeUndefined();
    expect(seen).toEqual(['old']);
    const [session] = await loads(rotating!.id, 1);
    expect(session!.getAttribute('n')).toBe('secret');
  });

  it('by the old id of a session start from what another one by that id has stored', async () => {
    const [first, second, rotating] = await loads(await stored({ n: 0 }), 3);
    rotating!.changeSessionId();
    await rotating!.save();
    const results = [first!, second!].map((session) => session.updateAttribute<number>('n', increment));
    await expect(Promise.all(results)).resolves.toEqual([1, 2]);
  });

  it('do not wait for ever for one that the store never replies to', async () => {
    const patient = new GatedRepository({ updateTimeout: 50 });
    repository = patient;
    const id = await stored({ n: 0 });
    const hanging = patient.gate('update');
    const [first, second, third] = await loads(id, 3);
    const hung = first!.updateAttribute<number>('n', increment);
    const waiting = second!.updateAttribute<number>('n', increment);
    await afterPromises();
    // When it has its turn, it has waited for longer than that: the timer of the turn may be a little early.
    const clock = jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 60);
    await expect(waiting)
      .rejects.toThrow(SessionConflictError)
      .finally(() => clock.mockRestore());
    patient.repair();
    await expect(third!.updateAttribute<number>('n', increment)).resolves.toBe(1);
    hanging.open();
    await expect(hung).rejects.toThrow(SessionConflictError);
  });

  describe('that are in conflict with those of other instances', () => {
    it('are repeated after pauses, and given up after the timeout with a 409', async () => {
      const writer = new RecordingWriter();
      writer.updates = new ConcurrentUpdates((change) => writer.write(change), 500);
      const heard: SecurityEvent[] = [];
      writer.securityEvents = new SecurityEvents({ shownId: (id) => id, factsOf: () => ({}) });
      writer.securityEvents.listen({
        listensTo: () => true,
        replacesLog: () => true,
        hear: (event) => heard.push(event),
      });
      writer.reply(...Array.from({ length: 10_000 }, (_, i) => ({ outcome: 'conflict', current: `${i}` }) as const));
      const session = writer.restore({ n: '0' });
      const error: unknown = await session.updateAttribute<number>('n', increment).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(SessionConflictError);
      const { attributeName, message, ...http } = error as SessionConflictError;
      expect(attributeName).toBe('n');
      expect(heard).toMatchObject([{ kind: 'limit-reached', limit: 'updateTimeout', sessionId: session.id }]);
      expect(message).toContain('Session attribute "n" was not updated within 500 ms');
      expect(http).toMatchObject({
        status: 409,
        response: {
          statusCode: 409,
          message: 'Too many concurrent updates of the session',
          error: 'Conflict',
          reason: 'too-many-updates',
        },
      });
      // Without pauses it would be thousands. Each conflict doubles the pause, up to 50 ms.
      expect(writer.writes.length).toBeGreaterThan(1);
      expect(writer.writes.length).toBeLessThan(200);
      expect(session.isDirty).toBe(false);
      expect(writer.updates.size).toBe(0);
    });
  });

  describe('for a client that has disconnected', () => {
    const unhandled: unknown[] = [];
    const record = (reason: unknown) => void unhandled.push(reason);

    beforeEach(() => {
      unhandled.length = 0;
      process.on('unhandledRejection', record);
    });
    afterEach(() => process.off('unhandledRejection', record));

    it('tell who awaits them of their failure, and the log where nobody does', async () => {
      const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
      const [one, other] = await loads(await stored({ n: 0 }), 2);
      repository.break('update');
      await expect(one!.updateAttribute('n', increment)).rejects.toThrow(SessionStoreError);
      const both = Promise.all([one!.updateAttribute('n', increment), one!.updateAttribute('m', increment)]);
      await expect(both).rejects.toThrow(SessionStoreError);
      expect(warn).not.toHaveBeenCalled();
      void other!.updateAttribute('n', increment);
      await eventually(() => expect(warn).toHaveBeenCalledTimes(1));
      expect(warn.mock.calls[0]![0]).toMatch(
        /^updateAttribute\(\) failed, and nothing awaits it, .*: SessionStoreError/,
      );
      warn.mockRestore();
      expect(unhandled).toEqual([]);
    });

    it('do not wait, and need no handler for their error', async () => {
      const [holding, left] = await loads(await stored({ n: 0 }), 2);
      const client = { headersSent: false, isAborted: false };
      TrackedSession.of(left!).bindTo(client);
      const gate = repository.gate('update');
      const held = holding!.updateAttribute<number>('n', increment);
      let calls = 0;
      const count = () => ++calls;
      void left!.updateAttribute('n', count);
      const awaited = left!.updateAttribute('n', count);
      client.isAborted = true;
      gate.open();
      await expect(held).resolves.toBe(1);
      await expect(awaited).rejects.toThrow(ClientDisconnectedError);
      await afterPromises();
      expect({ calls, writes: updates(), unhandled }).toEqual({ calls: 0, writes: 1, unhandled: [] });
    });

    it('are not repeated', async () => {
      const writer = new RecordingWriter();
      const client = { headersSent: false, isAborted: false };
      const session = writer.restore({ n: '0' });
      session.bindTo(client);
      writer.reply(() => {
        client.isAborted = true;
        return { outcome: 'conflict', current: '1' };
      });
      await expect(session.updateAttribute<number>('n', increment)).rejects.toThrow(ClientDisconnectedError);
      expect(writer.writes).toHaveLength(1);
    });

    it('are made when they need not wait', async () => {
      const [left] = await loads(await stored({ n: 0 }), 1);
      TrackedSession.of(left!).bindTo({ headersSent: false, isAborted: true });
      await expect(left!.updateAttribute<number>('n', increment)).resolves.toBe(1);
    });
  });
});
