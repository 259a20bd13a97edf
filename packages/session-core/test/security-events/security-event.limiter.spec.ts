import { jest } from '@jest/globals';
import { type SecurityEvent, SecurityEventLimiter } from '../../src/security-events/security-events.js';

const WINDOW = 1000;

let delivered: SecurityEvent[];
let limiter: SecurityEventLimiter;
beforeEach(() => {
  jest.useFakeTimers();
  delivered = [];
  limiter = new SecurityEventLimiter((event) => delivered.push(event));
});
afterEach(() => {
  jest.useRealTimers();
});

const from = (...addresses: string[]) => {
  for (const remoteAddress of addresses) limiter.add('unknown-token', { remoteAddress });
};
/** What was delivered since the last call: the addresses, and how many others each event stands for. */
const news = () => delivered.splice(0).map(({ remoteAddress, suppressed }) => [remoteAddress, suppressed]);

describe('SecurityEventLimiter', () => {
  it('delivers the first event of a client at once and the others once a window, even if the client comes back', () => {
    for (let visit = 1; visit <= 3; visit++) {
      from('10.0.0.1', '10.0.0.1', '10.0.0.1', '10.0.0.2');
      expect(news()).toEqual([
        ['10.0.0.1', 0],
        ['10.0.0.2', 0],
      ]);
      for (let window = 1; window <= 3; window++) {
        jest.advanceTimersByTime(WINDOW);
        // Those of the window before, of which one stands for the others.
        expect(news()).toEqual([['10.0.0.1', 1]]);
        from('10.0.0.1', '10.0.0.1');
        expect(news()).toEqual([]);
      }
      jest.advanceTimersByTime(WINDOW);
      expect(news()).toEqual([['10.0.0.1', 1]]);
      // Quiet clients are forgotten, and with the last one the timer.
      jest.advanceTimersByTime(WINDOW);
      expect([news(), jest.getTimerCount()]).toEqual([[], 0]);
    }
  });

  it('tells users behind one address apart', () => {
    for (const principalName of ['ann', 'bob'])
      limiter.add('unknown-token', { remoteAddress: '10.0.0.1', principalName });
    expect(delivered.map(({ principalName, suppressed }) => [principalName, suppressed])).toEqual([
      ['ann', 0],
      ['bob', 0],
    ]);
  });

  it('tells five hundred clients apart, even after others came before them', () => {
    for (let round = 0; round < 3; round++) {
      const addresses = Array.from({ length: 500 }, (_, i) => `10.${round}.${i >> 8}.${i & 255}`);
      from(...addresses);
      expect(news()).toEqual(addresses.map((address) => [address, 0]));
      jest.advanceTimersByTime(2 * WINDOW);
    }
  });

  it('counts more clients than five hundred together, and blames none of them', () => {
    from(...Array.from({ length: 500 }, (_, i) => `10.0.${i >> 8}.${i & 255}`));
    delivered.splice(0);
    const facts = { method: 'GET', path: '/orders', reason: 'malformed', limit: 'cookies', principalName: 'ann' };
    for (let i = 1; i <= 3; i++) limiter.add('unknown-token', { ...facts, remoteAddress: `10.1.0.${i}` });
    from('10.0.0.7');
    expect(news()).toEqual([[undefined, 0]]);
    limiter.flush();
    const [known, others] = delivered;
    expect([known?.remoteAddress, known?.suppressed]).toEqual(['10.0.0.7', 0]);
    expect([others?.remoteAddress, others?.principalName, others?.suppressed]).toEqual([undefined, undefined, 1]);
    expect(others).toMatchObject({ method: 'GET', path: '/orders', reason: 'malformed', limit: 'cookies' });
  });

  it('lets no clients that go on hide another one for longer than a window', () => {
    const noise = Array.from({ length: 500 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
    from(...noise, '192.0.2.1');
    expect(news().at(-1)).toEqual([undefined, 0]);
    from(...noise, '192.0.2.1');
    jest.advanceTimersByTime(WINDOW);
    news();
    from('192.0.2.1', ...noise, '192.0.2.1');
    expect(news()[0]).toEqual(['192.0.2.1', 0]);
    jest.advanceTimersByTime(WINDOW);
    expect(news()).toContainEqual(['192.0.2.1', 0]);
  });

  it('takes the addresses of one network of IPv6 for one client, and no addresses of IPv4', () => {
    from('2001:db8:0:1::1', '2001:db8:0:1:ffff::2', '2001:db8:0:2::1', '::ffff:10.0.0.1', '::ffff:10.0.0.2');
    expect(news().map(([address]) => address)).toEqual([
      '2001:db8:0:1::1',
      '2001:db8:0:2::1',
      '::ffff:10.0.0.1',
      '::ffff:10.0.0.2',
    ]);
    limiter.flush();
    expect(news()).toEqual([['2001:db8:0:1:ffff::2', 0]]);
  });

  it('tells clients apart whose address and user only look the same together', () => {
    limiter.add('unknown-token', { remoteAddress: '10.0.0.1', principalName: '2ann' });
    limiter.add('unknown-token', { remoteAddress: '10.0.0.12', principalName: 'ann' });
    expect(news()).toEqual([
      ['10.0.0.1', 0],
      ['10.0.0.12', 0],
    ]);
  });

  it('delivers what waits when it is flushed, each time', () => {
    for (let round = 0; round < 3; round++) {
      from('10.0.0.1', '10.0.0.1', '10.0.0.1');
      limiter.flush();
      expect(news()).toEqual([
        ['10.0.0.1', 0],
        ['10.0.0.1', 1],
      ]);
      limiter.flush();
      expect([news(), jest.getTimerCount()]).toEqual([[], 0]);
    }
  });
});
