import { setTimeout } from 'node:timers/promises';
import { HttpAgent } from '@nest-session/testing';
import { type AccountView, ROBBED } from '../../sides/side.js';
import { good, type Scenario, wrong } from '../scenario.js';
import type { Visitor } from '../visitor.js';

/** Milliseconds for which requests may be under way that left before the browser was bound. */
const UNDER_WAY = 61_000;

/** A browser that has signed in, and keeps the key of its session if the side binds it. */
interface Owner {
  readonly browser: HttpAgent;
  /** Epoch milliseconds. */
  readonly since: number;
}

/** By the origin of the side. They sign in when somebody opens the page, so that a press need not wait. */
const owners = new Map<string, Promise<Owner>>();

/** Malware copies the cookie of a user, and a thief puts it into another browser. */
export const stolenCookie: Scenario = {
  // It breaks nothing, and may last long.
  isHarmless: true,

  warm: (origin) => ownerAt(origin),

  prepare: () => Promise.resolve(),

  async act(visitor) {
    const { browser, since } = await ownerAt(visitor.origin);
    await setTimeout(Math.max(0, since + UNDER_WAY - Date.now()));
    const thief = new HttpAgent(visitor.origin, { secure: true });
    for (const [name, value] of Object.entries(browser.cookies)) {
      if (!name.endsWith('-device')) thief.setCookie(`${name}=${value}; Path=/`);
    }
    const seen = await nameFor(thief, visitor);
    const own = await nameFor(browser, visitor);
    const owner = own === ROBBED ? `${ROBBED} is still signed in` : `${ROBBED} is signed out`;
    if (seen === null && own === ROBBED)
      return good(`With the copied cookie, the browser of the thief is signed in as nobody, and ${owner}.`);
    return wrong(`With the copied cookie, the browser of the thief is signed in as ${seen ?? 'nobody'}, and ${owner}.`);
  },
};

function ownerAt(origin: string): Promise<Owner> {
  const owner = stillSignedIn(owners.get(origin)).then((known) => known ?? signIn(origin));
  owners.set(origin, owner);
  return owner;
}

async function stillSignedIn(known: Promise<Owner> | undefined): Promise<Owner | undefined> {
  const owner = await known?.catch(() => undefined);
  const name = owner && (await nameFor(owner.browser).catch(() => null));
  return name === ROBBED ? owner : undefined;
}

async function signIn(origin: string): Promise<Owner> {
  const browser = new HttpAgent(origin, { bindsSessions: true });
  await browser.post('/compared/robbed');
  // By that, the side knows that the browser has learned that it is bound.
  await nameFor(browser);
  return { browser, since: Date.now() };
}

/** Whom a side takes a browser for. */
async function nameFor(browser: HttpAgent, visitor?: Visitor): Promise<string | null> {
  const path = '/compared/account';
  const began = performance.now();
  const response = await browser.get(path);
  const took = Math.round(performance.now() - began);
  visitor?.requests.push({ method: 'GET', path, status: response.status, took });
  return response.json<AccountView>().name;
}
