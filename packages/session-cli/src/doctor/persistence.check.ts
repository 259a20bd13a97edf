import type { ExaminedNode } from './examined-node.js';
import { inTime } from './examined-node.js';
import { type Check, error, type Diagnosis, ok, seePage, warning } from './diagnosis.js';

/** Whether sessions are still there after a restart of Redis. */
export const PERSISTENCE: Check = {
  look: async ({ nodes }) =>
    (await Promise.all(nodes.filter(({ info }) => info.size > 0).map((node) => findingsOf(node)))).flat(),
};

async function findingsOf(node: ExaminedNode): Promise<Diagnosis[]> {
  const { address, info } = node;
  const findings: Diagnosis[] = [];
  for (const [field, what] of Object.entries(STATES)) {
    const state = info.get(field);
    if (state === undefined || state === 'ok') continue;
    findings.push(error(`${address} could not write ${what}`, 'See the log of Redis: its disk may be full.'));
  }
  const hasLog = info.get('aof_enabled') === '1';
  const saves = await savesOf(node);
  if (hasLog || saves === true) {
    const ways = [...(hasLog ? ['an append-only file'] : []), ...(saves ? ['snapshots'] : [])];
    return findings.length > 0 ? findings : [ok(`${address} keeps its data in ${ways.join(' and ')}`)];
  }
  const advice = `Set appendonly yes. ${seePage('What happens when something fails')}`;
  const message =
    saves === undefined
      ? `${address} has no append-only file, and has made no snapshot since its start`
      : `${address} keeps nothing on disk: a restart loses all sessions and deadlines`;
  return [...findings, warning(message, advice)];
}

const STATES = {
  rdb_last_bgsave_status: 'its last snapshot',
  aof_last_write_status: 'its append-only file',
  aof_last_bgrewrite_status: 'its append-only file anew',
};

/** Whether it makes snapshots; undefined: it does not say. */
async function savesOf({ client, info }: ExaminedNode): Promise<boolean | undefined> {
  const reply = (await inTime(client.config('GET', 'save')).catch(() => [])) as string[];
  const [, save] = reply;
  if (save !== undefined) return save !== '';
  return Number(info.get('rdb_saves') ?? 0) > 0 ? true : undefined;
}
