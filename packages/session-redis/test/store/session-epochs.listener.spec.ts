import { jest } from '@jest/globals';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Redis } from 'ioredis';
import type { SessionKeys } from '../../src/keys/session-keys.js';
import { SessionEpochs, SessionEpochsListener } from '../../src/repository/session-epochs.js';
import { HandClock } from '../support/hand-clock.js';
import { HandSignals } from '../support/hand-signals.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

/** All signals are heard, and a test confirms that. */
class HeardSignals extends HandSignals<SessionKeys> {
  confirm: (partitions: readonly SessionKeys[], since: number) => void = () => undefined;

  override onConfirmation(listener: typeof this.confirm): void {
    this.confirm = listener;
  }

  override heardSince(): number {
    return 0;
  }
}

let store: Store;
let proxy: TcpProxy;
let client: Redis;
let keys: SessionKeys;
let epochs: SessionEpochs;
beforeEach(async () => {
  store = await Store.open({ partitions: 4 });
  proxy = await TcpProxy.start({ port: store.server.port });
  client = new Redis(proxy.url);
  await client.ping();
  [keys] = store.partitions.all as [SessionKeys];
  epochs = new SessionEpochs();
});
afterEach(async () => {
  jest.restoreAllMocks();
  client.disconnect();
  await proxy.stop();
  await store.close();
});

const old = { creationTime: 1 };

it('an answer from before the signal of a new epoch is not confirmed, and does not outlive the next one', async () => {
  const signals = new HeardSignals();
  void new SessionEpochsListener(client, { all: [keys] }, epochs, signals);
  proxy.hold('reply');
  signals.tell(keys, 'missed');
  await proxy.untilHeld('reply');
  await store.scripts.raiseEpoch(keys);
  proxy.hold('request');
  signals.tell(keys, 'epoch');
  await proxy.untilHeld('request');
  proxy.release('reply');
  await eventually(() => !epochs.isStale(keys));
  expect(epochs.ends(keys, old)).toBe(false);
  signals.confirm([keys], performance.now());
  proxy.release('request');
  await eventually(() => expect(epochs.ends(keys, old)).toBe(true));
});

it('what is known of an epoch is not confirmed while it is asked for anew, each time', async () => {
  const [signals, clock] = [new HeardSignals(), new HandClock()];
  void new SessionEpochsListener(client, { all: [keys] }, epochs, signals);
  const isConfirmed = () => {
    clock.pass(3000);
    signals.confirm([keys], performance.now());
    return !epochs.isStale(keys);
  };
  signals.tell(keys, 'missed');
  await eventually(isConfirmed);
  for (let round = 1; round <= 2; round++) {
    await store.scripts.raiseEpoch(keys);
    proxy.hold('request');
    signals.tell(keys, 'epoch');
    await proxy.untilHeld('request');
    expect(isConfirmed()).toBe(false);
    proxy.release('request');
    await eventually(isConfirmed);
    expect(epochs.ends(keys, old)).toBe(true);
  }
});

it('a reply that arrives after the reply to a later read is ignored, each time', async () => {
  for (let round = 0; round < 3; round++) {
    proxy.hold('reply');
    const late = epochs.ask(client, keys);
    await proxy.untilHeld('reply');
    await store.scripts.raiseEpoch(keys);
    await epochs.ask(store.client, keys);
    const newest = Number(await store.client.hget(keys.epoch, 'at'));
    expect(epochs.pending(keys)).toBe(newest);
    proxy.release('reply');
    await late;
    expect(epochs.pending(keys)).toBe(newest);
    // Nor does a confirmation of what was true before.
    epochs.confirm(keys, performance.now() - 10_000);
    expect(epochs.isStale(keys)).toBe(false);
    // The next one has another time.
    await eventually(async () => expect(await store.now()).toBeGreaterThan(newest), { interval: 1 });
  }
});

it('a partition is asked again after a question that failed, and until its sessions are ended, beside others', async () => {
  const [broken, other] = store.partitions.all as [SessionKeys, SessionKeys];
  const signals = new HeardSignals();
  const listener = new SessionEpochsListener(store.client, { all: [broken, other] }, epochs, signals);
  listener.start();
  try {
    // A reply that is an error.
    await store.client.set(broken.epoch, 'no hash');
    await store.scripts.raiseEpoch(other);
    for (const keys of [broken, other]) signals.tell(keys, 'epoch');
    await eventually(() => expect(epochs.ends(other, { creationTime: 1 })).toBe(true));
    await store.client.del(broken.epoch);
    await store.scripts.raiseEpoch(broken);
    await eventually(() => expect(epochs.ends(broken, { creationTime: 1 })).toBe(true));
    // Another instance has ended the last session: no signal tells of that.
    expect(epochs.pending(other)).toBeDefined();
    await store.client.hset(other.epoch, 'ended', epochs.pending(other)!);
    await eventually(() => expect(epochs.pending(other)).toBeUndefined());
  } finally {
    await listener.stop();
  }
});

it('an instance hears that another one has ended the last session', async () => {
  const signals = new HeardSignals();
  const listener = new SessionEpochsListener(client, { all: [keys] }, epochs, signals);
  await store.scripts.raiseEpoch(keys);
  signals.tell(keys, 'epoch');
  await eventually(() => expect(epochs.pending(keys)).toBeDefined());
  await store.client.hset(keys.epoch, 'ended', epochs.pending(keys)!);
  listener.start();
  await eventually(() => expect(epochs.pending(keys)).toBeUndefined());
  await listener.stop();
});
