import { LeakGuard } from '@nest-session/test-infrastructure';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';
import { HeaderSessionIdResolver, SessionRepository } from '../../src/index.js';
import type { GatedRepository } from '../support/gated.repository.js';
import { closeApps, startApp } from '../support/session.app.js';
import { describeDeviceEndpoints } from './device-endpoints.suite.js';
import { IN_MEMORY } from './device.app.js';

LeakGuard.install();
afterEach(closeApps);

it.each([{ deviceBound: true }, { rotateEvery: '15m' }])(
  '%j is refused where tokens are in no cookie',
  async (option) => {
    const sessionIdResolver = new HeaderSessionIdResolver('X-Auth-Token');
    await expect(startApp({ session: { ...option, sessionIdResolver } })).rejects.toThrow(
      'needs the token in a cookie',
    );
  },
);

it.each([{ domain: 'shop.test' }, { domain: ['shop.test', 'mall.test'] }, { partitioned: true, secure: true }])(
  'deviceBound is refused with the cookie %j, of which other hosts or frames would be refused',
  (cookie) => {
    expect(() => resolveSessionOptions({ deviceBound: true, cookie })).toThrow('remove one of the two');
    expect(() => resolveSessionOptions({ cookie })).not.toThrow();
  },
);

it('deviceBound is refused where the store has no indexes', async () => {
  // It is never asked.
  class WithoutIndexes extends SessionRepository {
    constructor() {
      super();
    }

    protected load = () => Promise.reject(new Error('asked'));
    protected write = () => Promise.reject(new Error('asked'));
  }
  const store = new WithoutIndexes() as unknown as GatedRepository;
  await expect(startApp({ session: { deviceBound: true }, store })).rejects.toThrow(
    'needs a store that finds sessions',
  );
});

describeDeviceEndpoints(IN_MEMORY);
