import { instanceStates } from '../command/instance-states.js';
import { type Check, ok, warning } from './diagnosis.js';

/** Which instances of the application are alive. */
export const INSTANCES: Check = {
  ofStore: true,
  async look({ store }) {
    const { alive, silent } = await instanceStates(store!);
    const dead =
      silent.length === 0
        ? ''
        : `; ${silent.length} ${silent.length === 1 ? 'was' : 'were'} killed within a day, or ${silent.length === 1 ? 'does' : 'do'} not reach Redis`;
    if (alive.length === 0) {
      return [
        warning(`No instance is alive${dead}`, 'Start the application: nobody notices what is due, and events wait.'),
      ];
    }
    const shown = alive.slice(0, 5).map((name) => JSON.stringify(name.replace(/:[^:]*$/, '')));
    const more = alive.length > shown.length ? ', ...' : '';
    return [
      ok(
        `${alive.length} ${alive.length === 1 ? 'instance is' : 'instances are'} alive: ${shown.join(', ')}${more}${dead}`,
      ),
    ];
  },
};
