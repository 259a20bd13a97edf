import { jest } from '@jest/globals';
import { eventually } from '@nest-session/testing';

describe('eventually', () => {
  it('resolves to the first result that is not falsy', async () => {
    const results = [false, null, 0, '', 'found'];
    await expect(eventually(() => results.shift(), { interval: 1 })).resolves.toBe('found');
    expect(results).toEqual([]);
  });

  it('repeats a check that throws or rejects, and takes undefined as a success', async () => {
    let calls = 0;
    await eventually(
      async () => {
        calls++;
        expect(calls).toBeGreaterThan(2);
      },
      { interval: 1 },
    );
    expect(calls).toBe(3);
  });

  it('rejects with the error of the last check', async () => {
    let calls = 0;
    const check = (): never => {
      throw new Error(`call ${++calls}`);
    };
    const failure: Error = await eventually(check, { timeout: 20, interval: 1 }).catch((error) => error);
    expect(calls).toBeGreaterThan(1);
    expect(failure.message).toBe(`call ${calls}`);
  });

  it('does not count the time in which the process was suspended', async () => {
    const { now } = Date;
    let stoodStill = 0;
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() + stoodStill);
    let calls = 0;
    const check = () => {
      stoodStill += 60_000;
      return ++calls === 3;
    };
    await eventually(check, { interval: 1 });
    clock.mockRestore();
    expect(calls).toBe(3);
  });

  it('rejects with the last falsy result', async () => {
    await expect(eventually(() => null, { timeout: 1, interval: 1 })).rejects.toThrow('Still null after 1 ms');
    // As a database counts rows, and as no JSON has it.
    await expect(eventually(() => 0n, { timeout: 1, interval: 1 })).rejects.toThrow('Still 0n after 1 ms');
    await expect(eventually(() => NaN, { timeout: 1, interval: 1 })).rejects.toThrow('Still NaN after 1 ms');
  });
});
