import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import type { CommandOptions, StoreAddress } from './command.js';
import { shownArgument, UsageError } from './usage.error.js';

export const ADDRESS_FLAGS: CommandOptions = {
  url: {
    value: '<url>',
    text: 'the URL of Redis, redis:// or rediss:// (default REDIS_URL, or redis://localhost:6379)',
  },
  cluster: { value: '<host:port,...>', text: 'some nodes of a Redis Cluster, instead of a URL' },
  sentinel: { value: '<host:port,...>', text: 'some Sentinels, instead of a URL' },
  master: { value: '<name>', text: 'with --sentinel: the name of the master' },
  tls: { text: 'with --cluster or --sentinel: use TLS' },
  'tls-ca': { value: '<file>', text: 'TLS: the certificate of the authority, PEM' },
  'tls-cert': { value: '<file>', text: 'TLS: the certificate of this client, PEM' },
  'tls-key': { value: '<file>', text: 'TLS: the key of that certificate, PEM' },
  'tls-servername': { value: '<name>', text: 'TLS: the name in the certificate of Redis, if it is not its host' },
  namespace: { value: '<name>', text: 'the option namespace (default nest:session, of spring: spring:session)' },
};

type Given = Readonly<Record<string, string | boolean | undefined>>;
type Environment = Readonly<Record<string, string | undefined>>;

// Other users of a machine see command lines. So the environment may have the credentials for a Cluster or Sentinels,
// and the password for a url that has only the user.
export function givenAddress(given: Given, environment: Environment): StoreAddress {
  const text = (name: string) => given[name] as string | undefined;
  const [cluster, sentinels] = [nodesIn(given, 'cluster'), nodesIn(given, 'sentinel')];
  const hasNodes = cluster !== undefined || sentinels !== undefined;
  const url = text('url') ?? (hasNodes ? undefined : environment['REDIS_URL'] || 'redis://localhost:6379');
  const tls = tlsOf(given);
  const all = {
    url,
    cluster: cluster && { nodes: cluster },
    sentinels,
    name: text('master'),
    tls,
    namespace: text('namespace'),
    ...(hasNodes && { username: environment['REDIS_USERNAME'] }),
    password: hasNodes ? environment['REDIS_PASSWORD'] : passwordFor(url, environment['REDIS_PASSWORD']),
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as StoreAddress;
}

/** That of a user of a url who has none there. So a token need not be percent-encoded. */
function passwordFor(url = '', password: string | undefined): (() => string) | undefined {
  const { username, password: own } = URL.canParse(url) ? new URL(url) : { username: '', password: '' };
  return username !== '' && own === '' && password ? () => password : undefined;
}

function nodesIn(given: Given, name: string): { host: string; port: number }[] | undefined {
  const list = given[name];
  return typeof list === 'string' ? list.split(',').map((node) => nodeOf(name, list, node.trim())) : undefined;
}

/** `host:port`, also with an address such as [::1]. */
function nodeOf(name: string, list: string, node: string): { host: string; port: number } {
  const [, ipv6, host, port] = /^(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})$/.exec(node) ?? [];
  const number = Number(port);
  if (number > 0 && number < 65_536) return { host: (ipv6 ?? host)!, port: number };
  const shown = shownArgument(list, /^[^:,@/]*(?::\d*)?(?:,[^:,@/]*(?::\d*)?)*$/);
  throw new UsageError(`--${name} must be host:port, or several separated by commas, but is ${shown}.`);
}

function tlsOf(given: Given): ConnectionOptions | undefined {
  const files = { ca: 'tls-ca', cert: 'tls-cert', key: 'tls-key' };
  const read = Object.entries(files).flatMap(([name, flag]) =>
    given[flag] === undefined ? [] : [[name, contentOf(flag, given[flag] as string)] as const],
  );
  const servername = given['tls-servername'];
  if (!given['tls'] && read.length === 0 && servername === undefined) return undefined;
  return { ...Object.fromEntries(read), ...(typeof servername === 'string' && { servername }) };
}

function contentOf(flag: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    const { code = 'unknown error' } = cause as NodeJS.ErrnoException;
    throw new UsageError(`The file of --${flag} cannot be read: ${JSON.stringify(file)}, ${code}.`);
  }
}
