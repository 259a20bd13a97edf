import { shownText } from '@nest-session/core/internal';
import { isOfCluster } from '../../connection/redis-address.options.js';
import { counted } from '../counted.js';
import type { Check, Examined, Diagnosis } from './diagnosis.js';
import { error, ok, seePage, warning } from './diagnosis.js';
import type { ExaminedNode } from './examined-node.js';

/** What each server is: version, role, and whether it has loaded its data. */
export const SERVER: Check = {
  look: (examined) => examined.nodes.flatMap((node) => [...findingsOf(node, examined)]),
};

function* findingsOf(node: ExaminedNode, { redis }: Examined): Iterable<Diagnosis> {
  const { address, info, problem, silence } = node;
  if (silence !== undefined) return yield error(`${address} does not reply: ${silence}`, 'Start it, or see its log.');
  if (problem !== undefined) {
    const lost = 'version, memory and persistence are unknown';
    return yield warning(
      `${address} does not answer INFO, so its ${lost}: ${problem}`,
      `Grant +info. ${seePage('Securing Redis')}`,
    );
  }
  const [name, version] = versionOf(info);
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const oldest = name === 'Valkey' ? '7.2' : '7.0';
  const isOld = major < 7 || (name === 'Valkey' && major === 7 && minor < 2);
  if (isOld)
    yield error(
      `${address} is ${name} ${shownText(version)}`,
      `Upgrade it: ${name} ${oldest} is the oldest that works.`,
    );
  if (info.get('loading') === '1')
    yield error(`${address} still loads its data`, 'Wait until it has, and run this again.');
  const isCluster = isOfCluster(redis.options.connection);
  if (info.get('redis_mode') === 'cluster' && !isCluster) {
    yield error(
      `${address} is a node of a Cluster`,
      `Give --cluster instead of --url, and the option cluster to applications.`,
    );
  }
  if (info.get('role') === 'slave') {
    yield error(
      `${address} is a replica, which accepts no writes`,
      'Give the address of the primary, or that of Sentinels.',
    );
  }
  const up = Math.floor(Number(info.get('uptime_in_seconds') ?? 0) / 60);
  if (!isOld)
    yield ok(
      `${address} is ${name} ${shownText(version)}, ${info.get('redis_mode') ?? 'standalone'}, up for ${counted(up, 'minute')}`,
    );
}

/** Valkey says, too, which version of Redis it is like. */
function versionOf(info: ReadonlyMap<string, string>): [name: string, version: string] {
  const valkey = info.get('valkey_version');
  return valkey === undefined ? ['Redis', info.get('redis_version') ?? '0'] : ['Valkey', valkey];
}
