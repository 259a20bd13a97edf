import { Socket } from 'node:net';
import { textOf } from '@nest-session/core/internal';
import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { settledWithin } from '../timing/background-service.js';
import { assertOfIoredis } from './own-commands.js';
import { isOfCluster, type RedisAddress } from './redis-address.options.js';

const PARTS = ['username', 'password', 'sentinelUsername', 'sentinelPassword'] as const;

type Login = Pick<RedisOptions, (typeof PARTS)[number]>;
/** Says it anew each time that somebody connects. */
export type LoginSource = () => Promise<Login>;

interface Internals {
  readonly connector: { connect(...args: unknown[]): Promise<Redis['stream']>; firstError?: Error };
  readonly condition: { auth: [username: string, password: string] | string | undefined };
  readonly manuallyClosing?: boolean;
}

/** What of a client has no contract. @throws Error where this version of ioredis connects in another way */
export function internalsOf(client: Redis): Internals {
  const internals = client as unknown as Internals;
  assertOfIoredis(typeof internals.connector?.connect === 'function', '`connector.connect()` of a client');
  return internals;
}

// Milliseconds that the application may take for a password.
const PATIENCE = 10_000;

const logins = new WeakMap<Redis, Login>();

/** Where connections get a login that may change: from the function, or the client, of the application. */
export function loginSourceOf(address: RedisAddress): LoginSource | undefined {
  const place = isOfCluster(address) ? address.cluster : address;
  if (!('client' in place)) {
    const { password } = place;
    return password && (async () => ({ password: await passwordOf(password) }));
  }
  const { client } = place;
  return async () => loginIn(client.isCluster ? (client as Cluster).options.redisOptions : (client as Redis).options);
}

export function logInFrom(source: LoginSource, client: Redis): void {
  const internals = internalsOf(client);
  const { connector } = internals;
  const connect = connector.connect.bind(connector);
  logins.set(client, loginIn(client.options));
  connector.connect = async (...args) => {
    const failure = await takeLogin(source, client).catch((error: Error) => error);
    // ioredis would give the connection up. What has failed before it could connect is tried again.
    if (failure) connector.firstError = failure;
    return failure || internals.manuallyClosing ? new Socket().destroy() : connect(...args);
  };
}

/** So that the server need not close those whose password has changed. */
export async function renewLogins(source: LoginSource, clients: Iterable<Redis>): Promise<void> {
  const next = await source();
  for (const client of clients) {
    if (client.status !== 'ready' || !use(client, next)) continue;
    const { username, password = '' } = client.options;
    // Where that is refused, the connection goes on as before, and the next one tells.
    client.call('AUTH', ...(username ? [username] : []), password ?? '').catch(() => undefined);
  }
}

async function takeLogin(source: LoginSource, client: Redis): Promise<undefined> {
  if (!use(client, await source())) return;
  const { username, password } = client.options;
  internalsOf(client).condition.auth = username ? [username, password ?? ''] : (password ?? undefined);
}

/** Whether a connection logs in in another way now. A class of the application may set the options itself. */
function use(client: Redis, next: Login): boolean {
  const { options } = client;
  const last = logins.get(client) ?? {};
  if (PARTS.some((part) => options[part] !== last[part])) return false;
  if (!PARTS.some((part) => part in next && next[part] !== last[part])) return false;
  Object.assign(options, next);
  logins.set(client, loginIn(options));
  return true;
}

function loginIn(options: RedisOptions | undefined): Login {
  return Object.fromEntries(PARTS.map((part) => [part, options?.[part]])) as Login;
}

async function passwordOf(password: () => string | Promise<string>): Promise<string> {
  const asking = (async () => password())();
  const isGiven = await settledWithin(PATIENCE, asking);
  if (!isGiven) throw new Error(`The function \`password\` gave none within ${PATIENCE} ms`);
  const text: unknown = await asking.catch((cause: unknown) => {
    throw new Error(`The function \`password\` failed: ${textOf(cause)}`, { cause });
  });
  if (typeof text !== 'string' || text === '') throw new Error('The function `password` gave no text');
  return text;
}
