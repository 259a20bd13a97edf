import { ManualClock } from '@nest-session/testing';

describe('ManualClock', () => {
  it('stands still until it is advanced', () => {
    const clock = new ManualClock(1000);
    expect(clock.now()).toBe(1000);
    clock.advance(500);
    expect(clock.now()).toBe(1500);
    clock.advance(-1000);
    expect(clock.now()).toBe(500);
  });
});
