import { setTimeout } from 'node:timers/promises';
import { good, type Scenario, wrong } from '../scenario.js';

/** Milliseconds after which the slow request has long begun, and has not ended. */
const MEANWHILE = 500;

/** A sign-out in one tab, while a slow request of another tab is running. */
export const signOut: Scenario = {
  async prepare(visitor) {
    await visitor.add('apple');
    await visitor.signIn();
  },

  async act(visitor) {
    const otherTab = visitor.copy();
    const slow = otherTab.add('lantern', { isSlow: true });
    await setTimeout(MEANWHILE);
    const { status } = await visitor.send('POST', 'logout');
    const late = await slow;
    const { name, items } = await otherTab.account();
    if (name === null && items.length === 0)
      return good(
        `Logged out (${status}). The slow request ended (${late.status}), and the old cookie is still logged out.`,
      );
    return wrong(
      `Logged out (${status}). Then the slow request ended (${late.status}) and stored the session again: the old cookie is logged in as ${name}.`,
    );
  },
};
