import type { Cluster, Redis } from 'ioredis';
import {
  type Finding,
  FindingCounter,
  isCluster,
  type Pace,
  patternOf,
  redisTime,
} from '@nest-session/redis-events/internal';
import { pages } from '@nest-session/redis/internal';
import { SpringScripts } from '../scripts/spring/spring.scripts.js';
import { LeftoverSearch } from './leftover-search.js';
import { type SampledSession, sampleSession } from './sampled-session.js';
import type { SpringKeys } from '../keys/spring-keys.js';
import { type KeyCounts, type SpringOverview, springOverview } from './spring-overview.js';
import type { SpringRule } from './spring-rules.js';

/** How a namespace is looked at. */
export interface SpringLookOptions {
  /** Mends what it finds. */
  readonly mends: boolean;
  /** How many sessions are looked at more closely. */
  readonly sample: number;
  readonly pace: Pace;
  /** Receives how many keys and members have been looked at, from time to time. */
  readonly onProgress: (looked: number) => void;
}

/** What was found. */
export interface SpringLook {
  readonly overview: SpringOverview;
  readonly findings: readonly Finding<SpringRule>[];
  /** Whether leftovers were looked for: not on a Cluster, where a script cannot see a set and what it names. */
  readonly hasLookedForLeftovers: boolean;
}

const SCANNED_PER_CALL = 500;
const LARGEST_DIFFERENCE = 2000;

/**
 * Looks at the keys of Spring Session in a namespace, beside the applications that use it. It changes nothing unless it
 * mends, and then nothing but what it finds.
 */
export async function lookAtSpring(client: Redis, keys: SpringKeys, options: SpringLookOptions): Promise<SpringLook> {
  const { mends, sample, pace, onProgress } = options;
  const search = isCluster(client)
    ? undefined
    : new LeftoverSearch(client, keys, new SpringScripts(client, mends), pace);
  const counts: KeyCounts = { session: 0, shadow: 0, bucket: 0, expirations: 0, index: 0, indexOfPrincipals: 0 };
  const samples: SampledSession[] = [];
  for await (const page of scanned(client, keys)) {
    await pace.pass(page.length);
    onProgress(pace.passed);
    const ids: string[] = [];
    const now = await redisTime(client);
    for (const key of page) {
      const known = keys.read(key);
      if (!known) continue;
      counts[known.kind]++;
      if (known.kind === 'session') ids.push(known.id);
      else if (known.kind === 'bucket') await search?.bucket(key, known.minute, now);
      else if (known.kind === 'expirations') await search?.expirations(key);
      else if (known.kind === 'index') {
        if (known.isOfPrincipals) counts.indexOfPrincipals++;
        await search?.index(key);
      }
    }
    await search?.sessions(ids);
    samples.push(...(await sampled(client, keys, ids.slice(0, sample - samples.length))));
  }
  const overview = springOverview(counts, samples);
  const found = (await search?.end()) ?? [];
  const findings = [...found, ...findingsIn(overview)].toSorted((a, b) => (a.rule < b.rule ? -1 : 1));
  return { overview, findings, hasLookedForLeftovers: search !== undefined };
}

async function* scanned(client: Redis | Cluster, { prefix }: SpringKeys): AsyncIterable<string[]> {
  const nodes = isCluster(client) ? client.nodes('master') : [client];
  for (const node of nodes) {
    yield* pages((cursor) => node.scan(cursor, 'MATCH', `${patternOf(prefix)}*`, 'COUNT', SCANNED_PER_CALL));
  }
}

async function sampled(client: Redis, keys: SpringKeys, ids: readonly string[]): Promise<SampledSession[]> {
  const all = await Promise.all(ids.map((id) => sampleSession(client, keys, id)));
  return all.filter((session) => session !== undefined);
}

function findingsIn({ clockAhead = 0, serializer }: SpringOverview): Finding<SpringRule>[] {
  const found = new FindingCounter<SpringRule>();
  const seconds = (Math.abs(clockAhead) / 1000).toFixed(1);
  if (Math.abs(clockAhead) > LARGEST_DIFFERENCE) {
    found.add([{ what: `${seconds} s ${clockAhead > 0 ? 'ahead' : 'behind'}`, rule: 'clock-differs' }]);
  }
  if (serializer === 'mixed') found.add([{ what: 'the sessions that were looked at', rule: 'mixed-serializers' }]);
  return found.all;
}
