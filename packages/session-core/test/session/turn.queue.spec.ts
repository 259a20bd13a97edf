import { jest } from '@jest/globals';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { type StepBefore, TurnQueue } from '../../src/session/turn.queue.js';

LeakGuard.install();

const NEVER = 2 ** 31 - 1;

/** The entry of a key goes right after its last step. */
const afterLastSteps = () => new Promise((resolve) => setImmediate(resolve));

describe('TurnQueue', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it('starts the first step of a key at once, and the others in the order of the calls', async () => {
    const queue = new TurnQueue<number>(NEVER);
    const gate = new Gate();
    const started: number[] = [];
    const step = (n: number) => async () => {
      started.push(n);
      await gate.pass();
      return n;
    };
    const results = [1, 2, 3].map((n) => queue.run('key', step(n)));
    expect(started).toEqual([1]);
    gate.open();
    await expect(Promise.all(results)).resolves.toEqual([1, 2, 3]);
    expect(started).toEqual([1, 2, 3]);
  });

  it('lets a call that comes later wait for a step that waited itself', async () => {
    const queue = new TurnQueue<void>(NEVER);
    const [first, second] = [new Gate(), new Gate()];
    const started: string[] = [];
    const steps = [queue.run('key', () => first.pass()), queue.run('key', () => second.pass())];
    first.open();
    await steps[0];
    await afterLastSteps();
    const late = queue.run('key', async () => void started.push('late'));
    expect(started).toEqual([]);
    second.open();
    await Promise.all([...steps, late]);
    expect(started).toEqual(['late']);
  });

  it('does not let the steps of different keys wait for each other', async () => {
    const queue = new TurnQueue<void>(NEVER);
    const gate = new Gate();
    const waiting = queue.run('one', () => gate.pass());
    await queue.run('other', () => Promise.resolve());
    gate.open();
    await waiting;
  });

  it('gives a step the result of the one before, or its error, which does not stop the others', async () => {
    const queue = new TurnQueue<number>(NEVER);
    const seen: (StepBefore<number> | undefined)[] = [];
    const step = (result: number | Error) => (before: StepBefore<number> | undefined) => {
      seen.push(before);
      return result instanceof Error ? Promise.reject(result) : Promise.resolve(result);
    };
    const failure = new Error('failed');
    const results = [1, failure, 3].map((result) => queue.run('key', step(result)));
    await expect(results[1]).rejects.toBe(failure);
    await expect(results[2]).resolves.toBe(3);
    expect(seen).toEqual([undefined, { status: 'fulfilled', value: 1 }, { status: 'rejected', reason: failure }]);
  });

  it('starts the next step after the longest turn, although the one before has not finished', async () => {
    const queue = new TurnQueue<string>(1);
    const hanging = new Gate();
    const hung = queue.run('key', () => hanging.pass().then(() => 'late'));
    const next = queue.run('key', (before) => Promise.resolve(before!.status));
    await expect(next).resolves.toBe('running');
    await afterLastSteps();
    expect(queue.size).toBe(0);
    hanging.open();
    await expect(hung).resolves.toBe('late');
  });

  it('measures the longest turn from the start of a step, not from the call', async () => {
    jest.useFakeTimers();
    const queue = new TurnQueue<void>(50);
    const gates = [new Gate(), new Gate()];
    const started: string[] = [];
    const step = (name: string, end?: Gate) => (before: StepBefore<void> | undefined) => {
      started.push(`${name} after ${before?.status ?? 'none'}`);
      return end ? end.pass() : Promise.resolve();
    };
    const steps = [queue.run('key', step('one', gates[0])), queue.run('key', step('two', gates[1]))];
    steps.push(queue.run('key', step('three')));
    await jest.advanceTimersByTimeAsync(40);
    gates[0]!.open();
    // 89 ms after its call, but 49 ms after its start, the second step still has its turn.
    await jest.advanceTimersByTimeAsync(49);
    expect(started).toEqual(['one after none', 'two after fulfilled']);
    await jest.advanceTimersByTimeAsync(1);
    expect(started).toEqual(['one after none', 'two after fulfilled', 'three after running']);
    gates[1]!.open();
    await Promise.all(steps);
  });

  it('keeps nothing of a key whose steps are finished', async () => {
    const queue = new TurnQueue<number>(NEVER);
    const steps = Array.from({ length: 100 }, (_, i) => queue.run(`key${i % 10}`, () => Promise.resolve(i)));
    const failing = queue.run('failing', () => Promise.reject(new Error('failed')));
    expect(queue.size).toBe(11);
    await Promise.all(steps);
    await expect(failing).rejects.toThrow('failed');
    await afterLastSteps();
    expect(queue.size).toBe(0);
    await expect(queue.run('key0', (before) => Promise.resolve(before ? 1 : 0))).resolves.toBe(0);
  });
});
