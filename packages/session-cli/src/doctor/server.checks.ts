import type { Redis } from 'ioredis';
import { shownText } from '@nest-session/core/internal';
import { ALL_CLASSES, isOfCluster, lossOf, serverIn, tooOldProblem } from '@nest-session/redis-events/internal';
import { type SessionKeys, SessionPartitions, storedSessionIds } from '@nest-session/redis/internal';
import { counted, shownBytes } from '../command/shown.js';
import type { OpenStore } from '../command/store-access.js';
import { type Check, type Diagnosis, error, ofNodes, ofStore, ok, orOk, seePage, warning } from './diagnosis.js';
import { type ExaminedNode, ifDenied, inTime } from './examined-node.js';

export const SERVER: Check = ofNodes(function* ({ address, info, problem, silence }, { redis }) {
  if (silence !== undefined) return yield error(`${address} does not reply: ${silence}`, 'Start it, or see its log.');
  if (problem !== undefined) {
    const lost = 'version, memory and persistence are unknown';
    return yield warning(
      `${address} does not answer INFO, so its ${lost}: ${problem}`,
      `Grant +info. ${seePage('Securing Redis')}`,
    );
  }
  const [name, version = '0'] = serverIn(info);
  const mode = info.get('redis_mode') ?? 'standalone';
  const tooOld = tooOldProblem([name, version]);
  if (tooOld !== undefined) yield error(`${address} is ${name} ${shownText(version)}`, `Upgrade it: ${tooOld}.`);
  if (info.get('loading') === '1')
    yield error(`${address} still loads its data`, 'Wait until it has, and run this again.');
  if (mode === 'cluster' && !isOfCluster(redis.options.connection)) {
    const advice = 'Give --cluster instead of --url, and the option cluster to applications.';
    yield error(`${address} is a node of a Cluster`, advice);
  }
  if (info.get('role') === 'slave') {
    const advice = 'Give the address of the primary, or that of Sentinels.';
    yield error(`${address} is a replica, which accepts no writes`, advice);
  }
  const up = counted(Math.floor(Number(info.get('uptime_in_seconds') ?? 0) / 60), 'minute');
  if (tooOld === undefined) yield ok(`${address} is ${name} ${shownText(version)}, ${mode}, up for ${up}`);
});

const LARGEST_DIFFERENCE = 1000;

/** The clock of Redis decides when sessions end. */
export const CLOCK: Check = ({ nodes }) => {
  const known = nodes.flatMap(({ address, clock }) => (clock ? [{ address, ...clock }] : []));
  if (known.length === 0 && nodes.some(({ silence }) => silence !== undefined)) return [];
  if (known.length === 0) return [ok('No server tells its time to this user, so this is unknown')];
  const away = known.filter((each) => Math.abs(each.ahead) - each.error > LARGEST_DIFFERENCE);
  const findings = away.map(({ address, ahead }) =>
    warning(
      `The clock of ${address} is ${Math.abs(ahead)} ms ${ahead > 0 ? 'ahead of' : 'behind'} that of this machine`,
      'Let NTP set both. Sessions end by the clock of Redis, and the times in logs are those of the applications.',
    ),
  );
  const all = known.map(({ ahead }) => ahead);
  const apart = Math.max(...all) - Math.min(...all);
  if (apart - 2 * Math.max(...known.map((each) => each.error)) > LARGEST_DIFFERENCE) {
    const advice = 'Let NTP set all of them: each session ends by the clock of its node.';
    findings.push(warning(`The clocks of the nodes are up to ${apart} ms apart`, advice));
  }
  const farthest = Math.max(...all.map(Math.abs));
  return orOk(findings, `The clocks of Redis and of this machine are ${farthest} ms apart at most`);
};

// Milliseconds. A request waits for at least one reply; the default of `commandTimeout` is a second.
const SLOW = 20;
const VERY_SLOW = 250;
const TIMEOUT = 1000;

export const LATENCY: Check = ofNodes(function* ({ address, pings, silence }) {
  if (silence !== undefined) return;
  if (pings.length === 0) return yield ok(`${address} does not let this user PING, so this is unknown`);
  const [median, worst] = [pings[Math.floor(pings.length / 2)]!, pings.at(-1)!];
  const [usual, most] = [median, worst].map((ms) => (ms < 10 ? ms.toFixed(1) : Math.round(ms)));
  const message = `${address} replies within ${usual} ms, at worst ${most} ms (${pings.length} PINGs from this machine)`;
  const advice =
    'Look at SLOWLOG GET 10, at the processors of Redis, and at the network. If only this machine is far away, run this ' +
    'beside the application.';
  if (worst >= TIMEOUT) yield error(message, advice);
  else yield median >= SLOW || worst >= VERY_SLOW ? warning(message, advice) : ok(message);
});

const MUCH_MEMORY = 0.75;
const ALMOST_ALL_MEMORY = 0.95;

/** Whether Redis evicts sessions, or is about to refuse them; and whether they would take less room in another form. */
export const MEMORY: Check = async (examined) => [...(await room(examined)), ...(await compactness(examined))];

const room: Check = ofNodes(function* ({ address, info }, { store }) {
  if (info.size === 0) return;
  const number = (name: string) => Number(info.get(name) ?? 0);
  const [used, most] = [number('used_memory') - number('mem_not_counted_for_evict'), number('maxmemory')];
  const [policy, evictions] = [info.get('maxmemory_policy') ?? '', number('evicted_keys')];
  const noeviction = 'Set maxmemory-policy to noeviction, also in its configuration file.';
  if (policy !== 'noeviction') {
    const lost = lossOf(store instanceof Error ? 'sessions' : store.partitions.owner.holds);
    yield error(`${address} may evict ${lost}: its maxmemory-policy is ${shownText(policy)}`, noeviction);
  }
  // Without the setting, it is no finding any more: nothing but a restart of Redis resets the number.
  const loss = `${address} has evicted ${counted(evictions, 'key')} since its start`;
  if (evictions > 0)
    yield policy === 'noeviction' ? ok(loss) : warning(loss, `${noeviction} Visitors were signed out.`);
  const share = most === 0 ? 0 : used / most;
  const size = most === 0 ? `${shownBytes(used)}, without a limit` : `${shownBytes(used)} of ${shownBytes(most)}`;
  const advice = `Raise maxmemory, or free memory. ${seePage('Scaling')}`;
  if (share >= ALMOST_ALL_MEMORY) yield error(`${address} is full, and then saves nothing: it uses ${size}`, advice);
  else if (share >= MUCH_MEMORY) yield warning(`${address} is almost full: it uses ${size}`, advice);
  else yield ok(`${address} uses ${size}`);
});

// Redis keeps a hash in its compact form while none of its values is longer than the setting, in bytes.
const COMPACT_VALUE = 512;
const SAMPLE = 50;
// Other applications may have many keys in this Redis.
const MOST_PAGES = 20;
const WORTH_IT = 0.2;

/** Whether many sessions of a server are not in the compact form only for values of a few hundred bytes. */
const compactness: Check = ofStore(async ({ connections, partitions }, { nodes }) => {
  if (!(partitions instanceof SessionPartitions)) return [];
  const looks = nodes.map(async (node) => {
    const keys = partitions.all.find(({ prefix }) => connections.request.of(prefix) === node.client);
    const [value, entries] = await Promise.all(
      ['value', 'entries'].map(async (name) => Number(await settingOf(node, `hash-max-listpack-${name}`))),
    );
    if (!keys || !(value! < COMPACT_VALUE)) return [];
    const sampled = await inTime(sampledSessions(node.client, keys)).catch(() => []);
    const gaining = sampled.filter(
      ({ fields, longest }) => fields <= entries! && longest > value! && longest <= COMPACT_VALUE,
    );
    if (gaining.length === 0 || gaining.length < WORTH_IT * sampled.length) return [];
    const what = `${gaining.length} of ${counted(sampled.length, 'sampled session')}`;
    const message = `${what} of ${node.address} would take less memory, and time of Redis, in its compact form`;
    const advice = `CONFIG SET hash-max-listpack-value ${COMPACT_VALUE}, also in its configuration file.`;
    return [{ ...ok(message), advice: `${advice} ${seePage('Scaling')}` }];
  });
  return (await Promise.all(looks)).flat();
});

/** Of some sessions, how many fields they have, and the bytes of the longest of their names and values. */
async function sampledSessions(client: Redis, keys: SessionKeys) {
  const sampled: { readonly fields: number; readonly longest: number }[] = [];
  let left = MOST_PAGES;
  for await (const ids of storedSessionIds(client, keys)) {
    for (const id of ids.slice(0, SAMPLE - sampled.length)) {
      const texts = Object.entries(await client.hgetall(keys.session(id))).flat();
      const longest = Math.max(0, ...texts.map((text) => Buffer.byteLength(text)));
      sampled.push({ fields: texts.length / 2, longest });
    }
    if (sampled.length === SAMPLE || --left === 0) break;
  }
  return sampled;
}

const MANY_CLIENTS = 0.8;

export const CLIENTS: Check = ofNodes(function* ({ address, info }) {
  const [connected, most] = [Number(info.get('connected_clients')), Number(info.get('maxclients'))];
  if (Number.isNaN(connected + most)) return;
  const message = `${address} has ${connected} of ${most} connections`;
  const advice = 'Raise maxclients, or find out who keeps so many.';
  yield connected < MANY_CLIENTS * most ? ok(message) : warning(message, advice);
});

export const PERSISTENCE: Check = async ({ nodes }) =>
  (await Promise.all(nodes.filter(({ info }) => info.size > 0).map(persistenceOf))).flat();

const WRITTEN = {
  rdb_last_bgsave_status: 'its last snapshot',
  aof_last_write_status: 'its append-only file',
  aof_last_bgrewrite_status: 'its append-only file anew',
};

async function persistenceOf(node: ExaminedNode): Promise<Diagnosis[]> {
  const { address, info } = node;
  const failed = Object.entries(WRITTEN).filter(([field]) => (info.get(field) ?? 'ok') !== 'ok');
  const findings = failed.map(([, what]) =>
    error(`${address} could not write ${what}`, 'See the log of Redis: its disk may be full.'),
  );
  const hasLog = info.get('aof_enabled') === '1';
  const saves = await savesOf(node);
  if (hasLog || saves) {
    const ways = [...(hasLog ? ['an append-only file'] : []), ...(saves ? ['snapshots'] : [])];
    return findings.length > 0 ? findings : [ok(`${address} keeps its data in ${ways.join(' and ')}`)];
  }
  const message =
    saves === undefined
      ? `${address} has no append-only file, and has made no snapshot since its start`
      : `${address} keeps nothing on disk: a restart loses all sessions and deadlines`;
  return [...findings, warning(message, `Set appendonly yes. ${seePage('What happens when something fails')}`)];
}

/** Whether it makes snapshots; undefined: it does not say. */
async function savesOf(node: ExaminedNode): Promise<boolean | undefined> {
  const save = await settingOf(node, 'save');
  if (save !== undefined) return save !== '';
  return Number(node.info.get('rdb_saves') ?? 0) > 0 || undefined;
}

/** Undefined where CONFIG is not allowed. @throws when the server does not reply: that is a finding */
async function settingOf({ client }: ExaminedNode, name: string): Promise<string | undefined> {
  const [, value] = (await inTime(client.config('GET', name)).catch(ifDenied(() => []))) as string[];
  return value;
}

/** What a Redis must announce: one of the settings, of which the first is best. */
const OF_OWN = {
  flags: ['Kx', 'Ex'],
  what: 'expired sessions',
  otherwise: "Unless option expirations is 'sorted-set', their ends are noticed up to a minute later",
  // They may be off on purpose.
  unless: " With the options notifications: 'off' or expirations: 'sorted-set', add --ignore notifications.",
};
const OF_SHARED = {
  flags: ['Egx'],
  what: 'what happens to sessions of Spring',
  otherwise: 'Neither application hears what the other one ends',
  unless: '',
};

export const NOTIFICATIONS: Check = ofStore(async (store, { nodes }) => {
  const { partitions } = store;
  if (!(partitions instanceof SessionPartitions)) return [ok('Deadlines need no key events')];
  const { flags, what, otherwise, unless } = partitions.owner.holds === 'shared-sessions' ? OF_SHARED : OF_OWN;
  if (flags === OF_OWN.flags && (await isSortedSet({ ...store, partitions })))
    return [ok("With expirations: 'sorted-set', no key events are needed")];
  const settings = nodes.map(async (node) => [node.address, await settingOf(node, 'notify-keyspace-events')] as const);
  const known = (await Promise.all(settings)).flatMap(([address, setting]) =>
    setting === undefined ? [] : [{ address, setting }],
  );
  if (known.length === 0)
    return [ok('CONFIG is not allowed, so this cannot be read. The log of the application says it')];
  const announces = (setting: string) =>
    flags.some((each) => each.split('').every((flag) => setting.replace('A', ALL_CLASSES).includes(flag)));
  const silent = known.filter(({ setting }) => !announces(setting));
  const findings = silent.map(({ address, setting }) =>
    warning(
      `${address} does not announce ${what}: notify-keyspace-events is ${JSON.stringify(setting)}. ${otherwise}`,
      `Set notify-keyspace-events to ${flags[0]}, also in its configuration file.${unless}`,
    ),
  );
  return orOk(findings, `Redis announces ${what}`);
});

async function isSortedSet({ connection, partitions }: OpenStore<SessionPartitions>): Promise<boolean> {
  const counts = await connection.runInAll(partitions, (client, keys) =>
    Promise.all([client.zcard(keys.ends), client.zcard(keys.bucketList)]),
  );
  return counts.some(([ends]) => ends > 0) && counts.every(([, buckets]) => buckets === 0);
}
