import { jest } from '@jest/globals';
import { RecentRise } from '../../src/health/session-health.js';

const HOUR = 3_600_000;

describe('a number that may rise', () => {
  let now: number;
  let rise: RecentRise;
  beforeEach(() => {
    now = 1_000_000;
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    rise = new RecentRise();
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('has not risen when it is first noted, whatever it is', () => {
    expect([rise.note(7), rise.note(7)]).toEqual([false, false]);
  });

  it('has risen for an hour, and for another hour when it rises again', () => {
    rise.note(0);
    expect(rise.note(1)).toBe(true);
    now += HOUR - 1;
    expect(rise.note(1)).toBe(true);
    expect(rise.note(2)).toBe(true);
    now += HOUR - 1;
    expect(rise.note(2)).toBe(true);
    now += 1;
    expect(rise.note(2)).toBe(false);
  });

  it('has risen when it does so after it fell, as when a group was removed', () => {
    rise.note(5);
    expect([rise.note(2), rise.note(3)]).toEqual([false, true]);
  });
});
