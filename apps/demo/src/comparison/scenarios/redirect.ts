import { ACCOUNT } from '../../sides/side.js';
import { good, type Scenario, duration, wrong } from '../scenario.js';

/** Milliseconds in which Redis holds back writes, as it does while its disk is busy or a replica takes over. */
const SLOW = 700;

/** A sign-in that redirects to the account, while Redis is slow to write. */
export const redirect: Scenario = {
  needsOwnRedis: true,
  prepare: (visitor) => visitor.add('apple'),
  breakRedis: (redis) => redis.client('PAUSE', SLOW, 'WRITE'),

  async act(visitor) {
    const { name } = await visitor.signIn();
    const took = duration(visitor.requests.find(({ path }) => path.endsWith('login'))!.took);
    if (name === ACCOUNT) return good(`The redirect came after ${took}, and the page behind it greeted ${name}.`);
    return wrong(`The redirect came after ${took}, and the page behind it said: you are not signed in.`);
  },
};
