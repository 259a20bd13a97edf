import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { PRINCIPAL_ATTRIBUTE } from '../../src/session/attribute-names.js';
import { SessionBoundError, SessionStoreError } from '../../src/errors/session.errors.js';
import { SessionDeletedEvent } from '../../src/events/session.events.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';
import type { StoredText } from '../../src/session/session-record.js';
import { UNBOUNDED } from '../support/unbounded.js';
import { SessionSnapshot } from '../../src/session/session-snapshot.js';
import { TrackedSession } from '../../src/session/tracked-session.js';
import { RecordingWriter } from '../support/recording.writer.js';

const unreadable = {
  bytes: 10,
  read(): string {
    throw new SessionStoreError('The key is missing');
  },
};

const restored = (attributes: Record<string, StoredText>, writer = new RecordingWriter()) =>
  writer.restore({}, { attributes: Object.entries(attributes) });

describe('a text that costs something to read', () => {
  it('is read when its attribute is, and once', () => {
    const read = jest.fn(() => '{"n":1}');
    const session = restored({ cart: { bytes: 7, read }, other: unreadable });
    expect(session.attributeNames).toEqual(['cart', 'other']);
    expect(read).not.toHaveBeenCalled();
    expect(session.getAttribute('cart')).toEqual({ n: 1 });
    expect(session.getAttribute('cart')).toEqual({ n: 1 });
    expect(session.isDirty).toBe(false);
    expect(read).toHaveBeenCalledTimes(1);
  });

  it('that the store cannot read is an error of the store, and no undecodable value', () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const session = restored({ cart: unreadable });
    expect(() => session.getAttribute('cart')).toThrow(SessionStoreError);
    expect(session.peekAttribute('cart')).toBeUndefined();
    expect(session.attributeNames).toEqual(['cart']);
    expect(session.isDirty).toBe(false);
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });

  it('can be replaced and removed unread', async () => {
    const writer = new RecordingWriter();
    const session = restored({ a: unreadable, b: unreadable }, writer);
    session.setAttribute('a', 1);
    session.removeAttribute('b');
    await session.save();
    expect(writer.attributes).toEqual([{ a: '1', b: null }]);
  });

  it('counts unread for the bounds of the session', () => {
    const writer = new RecordingWriter();
    writer.bounds = { ...UNBOUNDED, maxSessionSize: 20 };
    const session = restored({ cart: unreadable }, writer);
    expect(() => session.setAttribute('n', 1_000_000)).toThrow(SessionBoundError);
    session.setAttribute('n', 1000);
    session.setAttribute('cart', 1);
    session.setAttribute('n', 1_000_000);
  });
});

it('an event whose principal cannot be read now throws only where that is read', () => {
  const times = { creationTime: 1, lastAccessedTime: 1, maxInactiveInterval: 1, absoluteTimeout: -1 };
  const attributes = [[PRINCIPAL_ATTRIBUTE, unreadable] as const, ['a', '1'] as const];
  const session = new SessionSnapshot({ id: 'id', ...times, attributes }, new JsonAttributeSerializer());
  const event = new SessionDeletedEvent({ sessionId: 'id', at: 1, session });
  expect(event.session.getAttribute('a')).toBe(1);
  expect(() => event.principalName).toThrow(SessionStoreError);
  expect(() => JSON.stringify(event)).toThrow(SessionStoreError);
});

describe('the memo of the store', () => {
  it('comes back with each update of the session', async () => {
    const memo = {};
    const writer = new RecordingWriter();
    const session = writer.restore({}, { memo });
    session.setAttribute('a', 1);
    await session.save();
    await session.updateAttribute('b', () => 2);
    session.keepIdle();
    session.changeSessionId();
    await session.save();
    expect(writer.writes.map((change) => 'memo' in change && change.memo === memo)).toEqual([true, true, true]);
    expect(writer.writes[2]).toMatchObject({ keepsIdle: true });
  });

  it('of a creation comes back with later updates', async () => {
    const memo = {};
    const writer = new RecordingWriter().reply({ outcome: 'created', creationTime: 1, memo });
    const session = TrackedSession.create(writer, writer.timeouts);
    session.setAttribute('a', 1);
    await session.save();
    session.setAttribute('a', 2);
    await session.save();
    expect(writer.writes.at(-1)).toMatchObject({ kind: 'update', memo });
  });

  it('belongs to the session that was loaded again', async () => {
    const memo = {};
    const writer = new RecordingWriter();
    const session = writer.restore({}, { memo: {} });
    session.replaceBy(writer.restore({}, { memo }));
    session.setAttribute('a', 1);
    await session.save();
    expect(writer.writes[0]).toHaveProperty('memo', memo);
  });
});
