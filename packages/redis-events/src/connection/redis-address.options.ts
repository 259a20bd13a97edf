import type { ConnectionOptions } from 'node:tls';
import type { OptionReader } from '@nest-session/core/internal';
import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { isCluster } from './node-with.js';
import { logger } from '../logging/failure.log.js';

interface RedisNodeAddress {
  /** Name or address of the host. */
  readonly host: string;
  /** TCP port. */
  readonly port: number;
}

type PasswordFunction = () => string | Promise<string>;

interface WithPassword {
  readonly password?: PasswordFunction | undefined;
}

/** Where one server has all keys: at a url, where Sentinels say, or where a client of the application connects to. */
export type ServerAddress =
  /** `tls`: undefined for a connection without TLS. */
  | ({ readonly url: string; readonly tls: ConnectionOptions | undefined } & WithPassword)
  | ({ readonly sentinels: RedisOptions } & WithPassword)
  | { readonly client: Redis };

export interface ClusterAddress {
  readonly cluster:
    | ({ readonly nodes: readonly RedisNodeAddress[]; readonly options: RedisOptions } & WithPassword)
    | { readonly client: Cluster };
}

export type RedisAddress = ServerAddress | ClusterAddress;

export function isOfCluster(address: RedisAddress): address is ClusterAddress {
  return 'cluster' in address;
}

/** Where Redis is: one of `url`, `sentinels`, `cluster` and `client`. */
export interface RedisAddressOptions {
  /** As `redis://user:password@host:6379/0` or `rediss://`, percent-encoded. @default 'redis://localhost:6379' */
  url?: string | undefined;
  /** Some Sentinels that know the master. Where they ask for a password of their own, give a `client`. */
  sentinels?: readonly RedisNodeAddress[];
  /** With `sentinels`: the name of the master. */
  name?: string;
  /** Redis Cluster. */
  cluster?: {
    /** Nodes to ask for the others at the start: a few are enough. */
    nodes: readonly RedisNodeAddress[];
  };
  /** With `sentinels` or `cluster`: the user for all servers. A `url` has it in itself. */
  username?: string;
  /**
   * With `sentinels` or `cluster`: that of all servers. Where it changes, as a token of IAM or Entra ID does, a
   * function, also with a `url` that has only the user: called before each connection, and once a minute.
   */
  password?: string | (() => string | Promise<string>);
  /** Options of `tls.connect()`, such as `ca`, `cert`, `key` and `servername`. Not with a `client`. */
  tls?: ConnectionOptions;
  /**
   * Your own ioredis client, without a `keyPrefix`. The library makes connections of its own like it, and neither
   * changes nor closes yours. A new password in its options is used within a minute, and whenever they connect.
   */
  client?: Redis | Cluster;
}

const DEFAULT_URL = 'redis://localhost:6379';

const OF_SERVERS = 'Options `username` and `password` belong to `sentinels` and `cluster`';
const OF_CLIENT =
  'Option `password` belongs to `url`, `sentinels` and `cluster`: set `options.password` of your `client`.';
const TWO_PASSWORDS =
  'Option `password` is a function, and `url` has a password as well: leave only the user in the `url`.';
const TLS_OF_CLIENT = 'Option `tls` belongs to `url`: give these options to your `client` instead.';
const TLS_WITHOUT = 'Option `tls` needs a rediss:// `url`.';
const KEY_PREFIX = 'Option `client` has a `keyPrefix`, which scripts do not see: remove it and use option `namespace`.';

const WAYS = ['url', 'sentinels', 'cluster', 'client'] as const;

interface KeptThere {
  readonly what: 'deadlines' | 'events' | 'sessions';
  readonly isShared: boolean;
}

export function readAddress(
  reader: OptionReader,
  options: RedisAddressOptions,
  kept: KeptThere = { what: 'sessions', isShared: false },
): RedisAddress {
  const ways = WAYS.filter((way) => options[way] !== undefined);
  if (ways.length > 1) reader.problem(`Give either ${ways.map((way) => `\`${way}\``).join(' or ')}, not both.`);
  const way = ways[0] ?? 'url';
  if (ways.length === 0) warnOfUndefined(options, kept);
  const url = reader.text('url', undefined, urlProblem);
  const client = reader.value('client', isClient, 'a Redis client of ioredis');
  const sentinels = readNodes(reader, 'sentinels', options.sentinels);
  const cluster = reader.section('cluster');
  const nodes = readNodes(cluster, 'nodes', options.cluster?.nodes, options.cluster !== undefined);
  cluster.finish();
  const tls = reader.value('tls', isObject, 'an object, the options of tls.connect() of Node.js');
  const name = reader.text('name', undefined, (text) => (text === '' ? 'must not be empty' : undefined));
  const password =
    typeof options.password === 'function' ? reader.value('password', isFunction, 'a function') : undefined;
  const texts = (password ? ['username'] : ['username', 'password']).map(
    (key) => [key, reader.text(key, undefined, () => undefined)] as const,
  );
  const credentials: RedisOptions = Object.fromEntries(texts.filter(([, text]) => text !== undefined));
  const isOwn = way === 'url' || way === 'client';
  const ofUrl = url !== undefined && URL.canParse(url) ? new URL(url) : undefined;
  const problems: readonly (readonly [problem: string, holds: unknown])[] = [
    ['Option `name` belongs to `sentinels`.', !ways.includes('sentinels') && name !== undefined],
    ['Option `name` is missing: the name of the master.', way === 'sentinels' && name === undefined],
    [`${OF_SERVERS}: a \`${way}\` has them.`, isOwn && Object.keys(credentials).length > 0],
    [OF_CLIENT, way === 'client' && password],
    [TWO_PASSWORDS, password && ofUrl && ofUrl.password !== ''],
    [TLS_OF_CLIENT, isOwn && tls && client],
    [TLS_WITHOUT, isOwn && tls && !client && (url === undefined || ofUrl?.protocol === 'redis:')],
    [KEY_PREFIX, (client?.options as RedisOptions | undefined)?.keyPrefix],
  ];
  for (const [problem, holds] of problems) if (holds) reader.problem(problem);
  switch (way) {
    case 'client':
      return client && isCluster(client) ? { cluster: { client } } : { client: client as Redis };
    case 'cluster':
      return { cluster: { nodes, options: { ...credentials, ...(tls && { tls }) }, password } };
    case 'sentinels': {
      // ioredis alone would speak TLS with the Sentinels only.
      const ofBoth = tls && { tls, sentinelTLS: tls, enableTLSForSentinelMode: true };
      return { sentinels: { sentinels: [...sentinels], name: name!, ...credentials, ...ofBoth }, password };
    }
    default:
      // ioredis takes REDISS:// for an address without TLS.
      return { url: url ?? DEFAULT_URL, tls: ofUrl?.protocol === 'rediss:' ? (tls ?? {}) : undefined, password };
  }
}

/** Without an address, the module uses the connections of `RedisSessionModule`, which are at `shared`. */
export function readAddressOrShare(
  reader: OptionReader,
  options: RedisAddressOptions,
  what: KeptThere['what'],
  shared: RedisAddress | undefined,
): { readonly connection: RedisAddress; readonly isShared: boolean } {
  const own = readAddress(reader, options, { what, isShared: shared !== undefined });
  const isShared = shared !== undefined && WAYS.every((way) => options[way] === undefined);
  return { connection: isShared ? shared : own, isShared };
}

/** Most often an environment variable is not set: nobody should look for the sessions in another Redis. */
function warnOfUndefined(options: RedisAddressOptions, { what, isShared }: KeptThere): void {
  const given = WAYS.find((way) => Object.hasOwn(options, way));
  if (given === undefined) return;
  const [where, otherwise] = isShared
    ? ['that of RedisSessionModule', 'leave the option out']
    : [DEFAULT_URL, `set \`url\` to '${DEFAULT_URL}'`];
  logger.warn(
    `Option \`${given}\` is undefined, so ${what} are kept in the default Redis, ${where}. If its value comes from ` +
      `an environment variable, set that. If this Redis is the right one, ${otherwise}`,
  );
}

function readNodes(
  reader: OptionReader,
  key: string,
  given: unknown,
  isRequired = given !== undefined,
): readonly RedisNodeAddress[] {
  const isList = (value: unknown): value is readonly RedisNodeAddress[] =>
    Array.isArray(value) && value.length > 0 && value.every(isNodeAddress);
  const what = 'a list of `{ host, port }`, at least one';
  const nodes = reader.value(key, isList, what);
  if (isRequired && given === undefined) reader.problem(`Option \`cluster.${key}\` must be ${what}.`);
  return nodes ?? [];
}

function isNodeAddress(value: unknown): value is RedisNodeAddress {
  const { host, port } = Object(value) as Record<keyof RedisNodeAddress, unknown>;
  return typeof host === 'string' && host !== '' && Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536;
}

// Not `instanceof`: the application may have another copy of ioredis.
function isClient(value: unknown): value is Redis | Cluster {
  return typeof value === 'object' && value !== null && 'duplicate' in value && 'options' in value;
}

function isFunction(value: unknown): value is PasswordFunction {
  return typeof value === 'function';
}

function isObject(value: unknown): value is ConnectionOptions {
  return typeof value === 'object' && value !== null;
}

const PROTOCOL = /^rediss?:\/\//i;
/** What an unencoded `/`, `?` or `#` in a password leaves: an `@` after the host, or a fragment. */
const CUT_PASSWORD = /#|^[^/]*\/\/[^/?]*[/?].*@/s;
const SOCKET = /^(?:\/|(?:redis\+)?(?:unix|socket|file):|rediss?:\/\/\/.*\D)/i;
const OF_SOCKET = 'give a client of ioredis with that `path` in place of the url';
const ENCODED =
  'percent-encode the user and the password, as `encodeURIComponent()` does, and check the host and the port';

/** The problem of a url, as the end of a sentence that quotes nothing of it: any part may be of the password. */
function urlProblem(url: string): string | undefined {
  if (SOCKET.test(url)) return `is the path of a Unix socket: ${OF_SOCKET}`;
  if (!PROTOCOL.test(url)) return 'must be a redis:// or rediss:// url';
  if (!URL.canParse(url) || CUT_PASSWORD.test(url)) return `cannot be read: ${ENCODED}`;
  const { username, password, pathname, searchParams } = new URL(url);
  if (![username, password].every(isEncoded)) return `cannot be read: ${ENCODED}`;
  if (searchParams.has('keyPrefix'))
    return 'has a `keyPrefix`, which scripts do not see: remove it and use option `namespace`';
  const databases = [pathname.slice(1), searchParams.get('db') ?? ''];
  return databases.every((each) => /^\d*$/.test(each))
    ? undefined
    : 'must end with the number of a database, such as /0, or have no path';
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
