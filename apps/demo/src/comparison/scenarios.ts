import type { Scenario } from './scenario.js';
import { everywhere } from './scenarios/everywhere.js';
import { frozen } from './scenarios/frozen.js';
import { killed } from './scenarios/killed.js';
import { redirect } from './scenarios/redirect.js';
import { signOut } from './scenarios/sign-out.js';
import { stolenCookie } from './scenarios/stolen-cookie.js';
import { twoTabs } from './scenarios/two-tabs.js';
import { unpaidOrder } from './scenarios/unpaid-order.js';

/** The buttons of the page, by their names in the address. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'two-tabs': twoTabs,
  redirect,
  'sign-out': signOut,
  'stolen-cookie': stolenCookie,
  killed,
  frozen,
  everywhere,
  'unpaid-order': unpaidOrder,
};
