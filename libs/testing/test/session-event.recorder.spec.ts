import {
  JsonAttributeSerializer,
  SessionCreatedEvent,
  SessionDeletedEvent,
  SessionDestroyedEvent,
  type SessionEvent,
  SessionExpiredEvent,
} from '@nest-session/core';
import { SessionSnapshot } from '@nest-session/core/store';
import { standStill } from '@nest-session/test-infrastructure';
import { SessionEventRecorder } from '@nest-session/testing';

const CLASSES = { created: SessionCreatedEvent, deleted: SessionDeletedEvent, expired: SessionExpiredEvent };

function event(type: keyof typeof CLASSES, sessionId: string): SessionEvent {
  const session = SessionSnapshot.empty(sessionId, new JsonAttributeSerializer());
  return new CLASSES[type]({ sessionId, at: Date.UTC(2026, 0, 1), session });
}

describe('SessionEventRecorder', () => {
  let recorder: SessionEventRecorder;

  beforeEach(() => {
    recorder = new SessionEventRecorder();
  });

  it('returns an event that was recorded before, each time it is asked', async () => {
    const created = event('created', 's1');
    recorder.record(created);
    await expect(recorder.next('created')).resolves.toBe(created);
    await expect(recorder.next('created', 's1')).resolves.toBe(created);
  });

  it('waits for an event by its type and session', async () => {
    const next = recorder.next('expired', 's2');
    const other = recorder.next('created', 's2');
    recorder.record(event('expired', 's1'));
    recorder.record(event('created', 's2'));
    const expired = event('expired', 's2');
    recorder.record(expired);
    await expect(next).resolves.toBe(expired);
    await expect(other).resolves.toMatchObject({ id: 'created-s2' });
  });

  it('keeps waiting when the process was suspended for the whole time', async () => {
    const next = recorder.next('created', 's1', { timeout: 40 });
    const created = event('created', 's1');
    setTimeout(() => {
      standStill(100);
      setImmediate(() => recorder.record(created));
    }, 1);
    await expect(next).resolves.toBe(created);
  });

  it('waits as long as it takes when the timeout is Infinity', async () => {
    const next = recorder.next('created', 's1', { timeout: Infinity });
    const created = event('created', 's1');
    setTimeout(() => recorder.record(created), 100);
    await expect(next).resolves.toBe(created);
  });

  it('waits for an event by its class, or by a base class', async () => {
    recorder.record(event('created', 's1'));
    const next = recorder.next(SessionDestroyedEvent);
    const expired = event('expired', 's1');
    recorder.record(expired);
    recorder.record(event('deleted', 's2'));
    await expect(next).resolves.toBe(expired);
    expect(recorder.count(SessionExpiredEvent)).toBe(1);
    expect(recorder.count(SessionDestroyedEvent)).toBe(2);
  });

  it('fails with a list of the events that were recorded instead', async () => {
    recorder.record(event('created', 's1'));
    recorder.record(event('deleted', 's1'));
    await expect(recorder.next(SessionExpiredEvent, 's1', { timeout: 1 })).rejects.toThrow(
      'No event SessionExpiredEvent of session s1 within 1 ms; recorded instead:\n' +
        '  created-s1 at 2026-01-01T00:00:00.000Z\n  deleted-s1 at 2026-01-01T00:00:00.000Z',
    );
    recorder.clear();
    await expect(recorder.next('expired', undefined, { timeout: 1 })).rejects.toThrow(
      "No event 'expired' within 1 ms; recorded instead: nothing",
    );
  });

  it('lists and counts events, redeliveries included, also by session', () => {
    const events = [event('created', 's1'), event('created', 's2'), event('deleted', 's1'), event('deleted', 's1')];
    for (const each of events) recorder.record(each);
    expect(recorder.all()).toEqual(events);
    expect(recorder.all('s2')).toEqual([events[1]]);
    expect(recorder.count('deleted')).toBe(2);
    expect(recorder.count('created', 's1')).toBe(1);
    recorder.clear();
    expect(recorder.all()).toEqual([]);
  });
});
