import { good, type Scenario, wrong } from '../scenario.js';

const ITEMS = ['lantern', 'teapot'];

/** Two tabs of one browser add an item each, at once. */
export const twoTabs: Scenario = {
  prepare: (visitor) => visitor.add('apple'),

  async act(visitor) {
    const answers = await Promise.all(ITEMS.map((item) => visitor.add(item)));
    const { items } = await visitor.account();
    const lost = ITEMS.filter((item) => !items.includes(item));
    const statuses = answers.map(({ status }) => status).join(' and ');
    if (lost.length === 0) return good(`Both items are in the cart: ${items.join(', ')}.`);
    return wrong(
      `The ${lost.join(' and the ')} is lost: the cart has only ${items.join(', ')}. Both tabs were told that all went well (${statuses}).`,
    );
  },
};
