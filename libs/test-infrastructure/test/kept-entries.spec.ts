import { TurnQueue } from '@nest-session/core/internal';
import { Gate, KeptEntries } from '@nest-session/test-infrastructure';

describe('KeptEntries', () => {
  let kept: KeptEntries;
  beforeEach(() => {
    kept = new KeptEntries();
  });
  afterEach(() => kept.stop());

  it('counts what a package keeps, with the place where it was added, until it is removed', async () => {
    const [turns, gate] = [new TurnQueue<void>(60_000), new Gate()];
    const before = kept.counts();
    const running = ['ann', 'bob', 'eve'].map((name) => turns.run(name, () => gate.pass()));
    const [grown, ...others] = kept.grownSince(before);
    expect(grown).toMatch(/^0 -> 3 entries: .*turn\.queue\.ts/);
    expect(others).toEqual([]);
    expect(kept.grownSince(before, 3)).toEqual([]);
    gate.open();
    await Promise.all(running);
    expect(kept.grownSince(before)).toEqual([]);
  });

  it('does not count what others keep', () => {
    const own = new Map([['a', 1]]);
    expect(kept.counts()).toEqual(new Map());
    expect(own.size).toBe(1);
  });

  it('leaves Map and Set as they were when it stops', () => {
    const during = [Map.prototype.set, Set.prototype.add];
    kept.stop();
    expect([Map.prototype.set.name, Set.prototype.add.name]).toEqual(['set', 'add']);
    expect(during).not.toContain(Map.prototype.set);
  });
});
