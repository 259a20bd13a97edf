import { TrackedSession } from '../../src/session/tracked-session.js';
import { RecordingWriter } from '../support/recording.writer.js';

const TIMEOUTS = { maxInactiveInterval: 1800, absoluteTimeout: -1 };

describe('TrackedSession', () => {
  let writer: RecordingWriter;

  beforeEach(() => {
    writer = new RecordingWriter();
  });

  describe('maxInactiveInterval', () => {
    it('is written only when it changed, and ends the session when it is 0', async () => {
      const session = writer.restore({ a: '1' });
      session.maxInactiveInterval = 60;
      await session.save();
      session.maxInactiveInterval = 60;
      session.setAttribute('a', 2);
      await session.save();
      session.maxInactiveInterval = 0;
      await session.save();
      expect(writer.writes.map((changes) => 'maxInactiveInterval' in changes && changes.maxInactiveInterval)).toEqual([
        60,
        undefined,
        0,
      ]);
      expect(session.isDeleted).toBe(true);
      expect(session.getAttribute('a')).toBeUndefined();
    });
  });

  describe('absoluteTimeout', () => {
    it('is written only when it changed', async () => {
      const session = writer.restore({ a: '1' });
      expect(session.absoluteTimeout).toBe(-1);
      session.absoluteTimeout = 60;
      await session.save();
      session.absoluteTimeout = 60;
      expect(session.isDirty).toBe(false);
      session.absoluteTimeout = -1;
      await session.save();
      expect(writer.writes).toMatchObject([
        { absoluteTimeout: 60, maxInactiveInterval: undefined },
        { absoluteTimeout: -1, maxInactiveInterval: undefined },
      ]);
    });
  });

  describe.each(['maxInactiveInterval', 'absoluteTimeout'] as const)('%s', (timeout) => {
    it('is written when it is set back after a save that had no reply, until one has', async () => {
      const session = writer.restore({ a: '1' });
      session[timeout] = 60;
      writer.reply(() => Promise.reject(new Error('lost')));
      await expect(session.save()).rejects.toThrow('lost');
      session[timeout] = TIMEOUTS[timeout];
      expect(session.isDirty).toBe(true);
      await session.save();
      expect(session.isDirty).toBe(false);
      await session.save();
      expect(writer.writes).toMatchObject([{ [timeout]: 60 }, { [timeout]: TIMEOUTS[timeout] }]);
    });

    it.each([
      [90, 90],
      ['90s', 90],
      ['30m', 1800],
      ['1.5h', 5400],
      ['never', -1],
      [-1, -1],
      [-2, -1],
    ])('takes %p and reads as %d seconds', async (given, seconds) => {
      const session = writer.restore();
      session[timeout] = given;
      expect(session[timeout]).toBe(seconds);
      const created = TrackedSession.create(writer, TIMEOUTS);
      created[timeout] = given;
      created.setAttribute('a', 1);
      await created.save();
      expect(writer.writes).toMatchObject([{ kind: 'create', [timeout]: seconds }]);
    });

    it.each([0, '0', '0s'])(
      'ends a stored session when set to %p, and keeps a new one from being stored',
      async (now) => {
        const session = writer.restore({ a: '1' });
        session[timeout] = now;
        await expect(session.save()).resolves.toBe('saved');
        expect(writer.writes).toMatchObject([{ kind: 'update', maxInactiveInterval: 0 }]);
        expect(session.isDeleted).toBe(true);
        const created = TrackedSession.create(writer, TIMEOUTS);
        created[timeout] = now;
        created.setAttribute('a', 1);
        expect(created.isDirty).toBe(false);
      },
    );

    it.each([1.5, NaN, Infinity, 2 ** 31, '60', '1500ms', 'forever', '', null, true])('refuses %p', (given) => {
      const session = writer.restore();
      expect(() => (session[timeout] = given as number)).toThrow(RangeError);
      expect(session.isDirty).toBe(false);
    });
  });

  describe('kept idle', () => {
    it('marks all its writes, and none otherwise', async () => {
      const session = writer.restore({ n: '1' });
      session.setAttribute('a', 1);
      await session.save();
      session.keepIdle();
      session.setAttribute('a', 2);
      await session.save();
      await session.updateAttribute<number>('n', (n = 0) => n + 1);
      expect(writer.writes.map((changes) => 'keepsIdle' in changes && changes.keepsIdle)).toEqual([false, true, true]);
    });
  });

  describe('idleTime', () => {
    it.each([
      { what: 'of a session that expires', given: { timeToLive: 1_790_000 }, idleTime: 10_000 },
      {
        what: 'when the absolute end comes first',
        given: { absoluteTimeout: 60, timeToLive: 50_000 },
        // It was accessed a second after its creation.
        idleTime: 59_000 - 50_000,
      },
      {
        what: 'when only that comes',
        given: { maxInactiveInterval: -1, absoluteTimeout: 60, timeToLive: 59_000 },
        idleTime: 0,
      },
      {
        what: 'of a session without end',
        given: { maxInactiveInterval: -1, timeToLive: undefined },
        idleTime: undefined,
      },
    ])('is computed from the time to live: $what', ({ given, idleTime }) => {
      expect(writer.restore({}, given).idleTime).toBe(idleTime);
    });
  });
});
