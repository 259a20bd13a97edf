import { SECONDS_LEFT } from '../../sides/side.js';
import { duration, good, type Scenario, wrong } from '../scenario.js';

/** Milliseconds after which the killed instance runs again, and nothing more is to come. */
const OVER = 15_000;

/** An order that nobody pays: the instance that took it is killed before it is due. */
export const unpaidOrder: Scenario = {
  needsInstances: true,
  prepare: (visitor) => visitor.add('lantern'),

  async act(visitor) {
    await visitor.send('POST', 'order');
    return undefined;
  },

  find(entries, begun) {
    const death = entries.find(({ type }) => type === 'killed');
    const mail = entries.find(({ type }) => type === 'mail');
    const died = death ? `${death.instance.replace(/^i/, 'I')} took the order, and was killed` : 'Nobody was killed';
    if (mail)
      return good(
        `${died}. Due after ${SECONDS_LEFT} s, it was cancelled by ${mail.instance} after ${duration(mail.at - begun)}.`,
      );
    const waited = Date.now() - begun;
    return waited < OVER
      ? undefined
      : wrong(`${died}. Due after ${SECONDS_LEFT} s, it is still not cancelled after ${duration(waited)}.`);
  },
};
