import { good, type Scenario, duration, slow, wrong } from '../scenario.js';

/** Milliseconds in which Redis replies to nobody. */
const FROZEN = 5000;
/** Milliseconds that a visitor waits without thinking that the site is broken. */
const PATIENCE = 3000;
/** Milliseconds after which Redis must have replied long ago. */
const GIVEN_UP = 15_000;

/** A request while Redis does not reply, and the cart when it does again. */
export const frozen: Scenario = {
  needsOwnRedis: true,
  prepare: (visitor) => visitor.add('apple'),
  breakRedis: (redis) => redis.client('PAUSE', FROZEN, 'ALL'),

  async act(visitor) {
    const began = performance.now();
    const { status, took } = await visitor.send('GET', 'account');
    let last = status;
    while (last !== 200 && performance.now() - began < GIVEN_UP) last = (await visitor.send('GET', 'account')).status;
    const answer = `A request was answered with ${status} after ${duration(took)}`;
    const { items } = await visitor.account();
    if (items.join() !== 'apple') return wrong(`${answer}, and the cart was lost.`);
    if (took > PATIENCE) return slow(`${answer}: it hung as long as Redis did. The cart is still there.`);
    return good(`${answer}: an error instead of a page that hangs. The cart is still there.`);
  },
};
