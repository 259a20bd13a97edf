import { type RecordedEvent, type RecordedEventType, SessionEventRecorder } from '@nest-session/testing';

class TestEvent implements RecordedEvent {
  readonly id: string;
  readonly at = Date.UTC(2026, 0, 1);
  readonly principalName = undefined;
  readonly dataLost = false;
  readonly session: RecordedEvent['session'];

  constructor(
    readonly type: RecordedEventType,
    readonly sessionId: string,
  ) {
    this.id = `${type}:${sessionId}`;
    this.session = { id: sessionId, attributeNames: [], getAttribute: () => undefined };
  }
}

class ExpiredEvent extends TestEvent {
  constructor(sessionId: string) {
    super('expired', sessionId);
  }
}

function event(type: RecordedEventType, sessionId: string): RecordedEvent {
  return new TestEvent(type, sessionId);
}

describe('SessionEventRecorder', () => {
  let recorder: SessionEventRecorder;

  beforeEach(() => {
    recorder = new SessionEventRecorder();
  });

  it('gives an event that was recorded before, again and again', async () => {
    const created = event('created', 's1');
    recorder.record(created);
    await expect(recorder.next('created')).resolves.toBe(created);
    await expect(recorder.next('created', 's1')).resolves.toBe(created);
  });

  it('waits for an event of this kind and session', async () => {
    const next = recorder.next('expired', 's2');
    const other = recorder.next('created', 's2');
    recorder.record(event('expired', 's1'));
    recorder.record(event('created', 's2'));
    const expired = new ExpiredEvent('s2');
    recorder.record(expired);
    await expect(next).resolves.toBe(expired);
    await expect(other).resolves.toMatchObject({ id: 'created:s2' });
  });

  it('takes the class of an event as well', async () => {
    recorder.record(event('expired', 's1'));
    const next = recorder.next(ExpiredEvent);
    const expired = new ExpiredEvent('s1');
    recorder.record(expired);
    await expect(next).resolves.toBe(expired);
    expect(recorder.count(ExpiredEvent)).toBe(1);
    expect(recorder.count('expired')).toBe(2);
  });

  it('says what was recorded instead', async () => {
    recorder.record(event('created', 's1'));
    recorder.record(event('deleted', 's1'));
    await expect(recorder.next(ExpiredEvent, 's1', { timeout: 1 })).rejects.toThrow(
      'No event ExpiredEvent of session s1 within 1 ms; recorded instead:\n' +
        '  created:s1 at 2026-01-01T00:00:00.000Z\n  deleted:s1 at 2026-01-01T00:00:00.000Z',
    );
    recorder.clear();
    await expect(recorder.next('expired', undefined, { timeout: 1 })).rejects.toThrow(
      "No event 'expired' within 1 ms; recorded instead: nothing",
    );
  });

  it('lists and counts, by session too, redeliveries included', () => {
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
