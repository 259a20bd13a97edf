import { shownText } from '@nest-session/core/internal';
import { isOfCluster, serverIn, tooOldProblem } from '@nest-session/redis-events/internal';
import { counted } from '../command/counted.js';
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
  const [name, version = '0'] = serverIn(info);
  const tooOld = tooOldProblem([name, version]);
  if (tooOld !== undefined) yield error(`${address} is ${name} ${shownText(version)}`, `Upgrade it: ${tooOld}.`);
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
  if (tooOld === undefined)
    yield ok(
      `${address} is ${name} ${shownText(version)}, ${info.get('redis_mode') ?? 'standalone'}, up for ${counted(up, 'minute')}`,
    );
}
