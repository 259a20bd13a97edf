import type { Redis } from 'ioredis';
import { shownError } from '@nest-session/core/internal';
import { infoOf, isAnswer, settledWithin } from '@nest-session/redis-events/internal';
import type { ReachedRedis } from '../command/store-access.js';

const PATIENCE = 3000;
const PINGS = 20;

export interface ExaminedNode {
  readonly address: string;
  readonly client: Redis;
  readonly info: ReadonlyMap<string, string>;
  readonly silence: string | undefined;
  readonly problem: string | undefined;
  /** Milliseconds of each PING, the shortest first. */
  readonly pings: readonly number[];
  /** By how many milliseconds its clock is ahead of that of this machine, and the largest error of that. */
  readonly clock: { readonly ahead: number; readonly error: number } | undefined;
}

export function examineNodes({ connections }: ReachedRedis): Promise<ExaminedNode[]> {
  return Promise.all([...connections.request.all].map(examine));
}

async function examine(client: Redis): Promise<ExaminedNode> {
  const known = { address: serverOf(client), client, info: new Map<string, string>(), problem: undefined };
  try {
    if (client.status !== 'ready') await inTime(new Promise<void>((resolve) => client.once('ready', resolve)));
    const pings = await pingsOf(client).catch(ifDenied(() => []));
    const clock = await inTime(clockOf(client)).catch(ifDenied(() => undefined));
    const info = await inTime(client.info()).then(infoOf, ifDenied(shownError));
    const its = { ...known, pings, clock, silence: undefined };
    return typeof info === 'string' ? { ...its, problem: info } : { ...its, info };
  } catch (error) {
    return { ...known, pings: [], clock: undefined, silence: shownError(error) };
  }
}

/** A right that is missing: the rest is to be seen. */
export function ifDenied<T>(instead: (error: Error) => T): (error: unknown) => T {
  return (error) => {
    if (isAnswer(error)) return instead(error as Error);
    throw error;
  };
}

async function pingsOf(client: Redis): Promise<number[]> {
  const pings: number[] = [];
  for (let i = 0; i < PINGS; i++) {
    const begin = performance.now();
    await inTime(client.ping());
    pings.push(performance.now() - begin);
  }
  return pings.sort((one, other) => one - other);
}

/** A call to one server. @throws Error when it does not reply in time */
export async function inTime<T>(reply: Promise<T>): Promise<T> {
  if (await settledWithin(PATIENCE, reply)) return reply;
  throw new Error(`no reply within ${PATIENCE} ms`);
}

async function clockOf(client: Redis): Promise<{ ahead: number; error: number }> {
  const begin = Date.now();
  const [seconds, microseconds] = await client.time();
  const end = Date.now();
  const at = Number(seconds) * 1000 + Number(microseconds) / 1000;
  return { ahead: Math.round(at - (begin + end) / 2), error: Math.ceil((end - begin) / 2) + 1 };
}

function serverOf({ options: { host, port, sentinels, name }, stream }: Redis): string {
  if (!sentinels) return `${host}:${port}`;
  // Behind Sentinels, ioredis leaves its defaults in the options.
  const { remoteAddress, remotePort } = stream;
  return remoteAddress === undefined ? `master ${name}` : `${remoteAddress}:${remotePort}`;
}
