import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Redis } from 'ioredis';
import type { SessionKeys } from '../../src/keys/session-keys.js';
import { SessionEpochs } from '../../src/repository/session-epochs.js';
import { SessionEpochsListener } from '../../src/repository/session-epochs.listener.js';
import { HandSignals } from '../support/hand-signals.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

/** All signals are heard, and a test confirms that. */
class HeardSignals extends HandSignals {
  confirm: (partitions: readonly SessionKeys[], since: number) => void = () => undefined;

  override onConfirmation(listener: typeof this.confirm): void {
    this.confirm = listener;
  }

  override heardSince(): number {
    return 0;
  }
}

it('an answer from before the signal of a new epoch is not confirmed, and does not outlive the next one', async () => {
  const store = await Store.open({ partitions: 4 });
  const proxy = await TcpProxy.start({ port: store.server.port });
  const client = new Redis(proxy.url);
  try {
    const [keys] = store.partitions.all as [SessionKeys];
    const [epochs, signals] = [new SessionEpochs(), new HeardSignals()];
    void new SessionEpochsListener(client, [keys], epochs, signals);
    await client.ping();
    proxy.hold('reply');
    signals.tell(keys, 'missed');
    await proxy.untilHeld('reply');
    await store.scripts.raiseEpoch(keys);
    proxy.hold('request');
    signals.tell(keys, 'epoch');
    await proxy.untilHeld('request');
    proxy.release('reply');
    await eventually(() => !epochs.isStale(keys));
    expect(epochs.ends(keys, { creationTime: 1 })).toBe(false);
    signals.confirm([keys], performance.now());
    proxy.release('request');
    await eventually(() => expect(epochs.ends(keys, { creationTime: 1 })).toBe(true));
  } finally {
    client.disconnect();
    await proxy.stop();
    await store.close();
  }
});
