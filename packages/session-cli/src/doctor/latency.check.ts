import { type Check, type Diagnosis, error, ok, warning } from './diagnosis.js';
import type { ExaminedNode } from './examined-node.js';

// Milliseconds. A request waits for at least one reply; the default of `commandTimeout` is a second.
const SLOW = 20;
const VERY_SLOW = 250;
const TIMEOUT = 1000;

/** How long each server takes to reply, from this machine. */
export const LATENCY: Check = {
  look: ({ nodes }) => nodes.filter(({ silence }) => silence === undefined).map(findingOf),
};

function findingOf({ address, pings }: ExaminedNode): Diagnosis {
  if (pings.length === 0) return ok(`${address} does not let this user PING, so this is unknown`);
  const [median, worst] = [pings[Math.floor(pings.length / 2)]!, pings.at(-1)!];
  const message = `${address} replies within ${shown(median)} ms, at worst ${shown(worst)} ms (${pings.length} PINGs from this machine)`;
  const advice =
    'Look at SLOWLOG GET 10, at the processors of Redis, and at the network. If only this machine is far away, run this ' +
    'beside the application.';
  if (worst >= TIMEOUT) return error(message, advice);
  return median >= SLOW || worst >= VERY_SLOW ? warning(message, advice) : ok(message);
}

function shown(ms: number): string {
  return ms < 10 ? ms.toFixed(1) : String(Math.round(ms));
}
