import { good, type Scenario, duration, wrong } from '../scenario.js';

/** Milliseconds after which a killed instance runs again, and nothing more is to come. */
const OVER = 13_000;

/**
 * The end of a session, with a mail about its cart: the instance that is about to write it is killed with `kill -9`.
 */
export const killed: Scenario = {
  needsInstances: true,
  prepare: (visitor) => visitor.add('lantern'),

  async act(visitor) {
    await visitor.send('PUT', 'end');
    return undefined;
  },

  find(entries, begun) {
    const death = entries.find(({ type }) => type === 'killed');
    const mail = entries.find(({ type }) => type === 'mail');
    const died = death ? `${death.instance.replace(/^i/, 'I')} was killed before the mail` : 'No instance was killed';
    if (mail && death) {
      const after = duration(mail.at - death.at);
      return good(`${died}. Then ${mail.instance} wrote it, ${after} later: ${mail.items.join(', ')}.`);
    }
    if (mail) return good(`${died}, and ${mail.instance} wrote the mail.`);
    const waited = Date.now() - (death?.at ?? begun);
    return waited < OVER
      ? undefined
      : wrong(`${died}, and ${duration(waited)} later there is none: nobody else writes it.`);
  },
};
