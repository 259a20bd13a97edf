import { Injectable, Optional } from '@nestjs/common';
import { SessionEventGroups } from '@nest-session/redis';
import { DemoRedis } from './demo.redis.js';

const NAMESPACE = 'nest:session';
const LATEST_ENTRIES = 200;
/** Milliseconds: an instance that has asked for events since then is alive. */
const ALIVE = 10_000;

/** Reads what Redis holds of one session, by the keys that docs/redis-data-model.md names. */
@Injectable()
export class SessionInspector {
  constructor(
    private readonly redis: DemoRedis,
    @Optional() private readonly groups?: SessionEventGroups,
  ) {}

  /** Undefined where sessions are kept in memory, and while Redis does not reply. */
  async look(id: string): Promise<object | undefined> {
    const { client } = this.redis;
    if (client?.status !== 'ready' || !this.groups) return undefined;
    const member = `expires:${id}`;
    const hash = { key: `${NAMESPACE}:sessions:${id}` };
    const shadow = { key: `${NAMESPACE}:sessions:${member}` };
    const [fields, ofHash, ofShadow, entries, groups] = await Promise.all([
      client.hgetall(hash.key),
      client.pttl(hash.key),
      client.pttl(shadow.key),
      client.xrevrange(`${NAMESPACE}:events`, '+', '-', 'COUNT', LATEST_ENTRIES),
      this.groups.list(),
    ]);
    const bucket = { key: `${NAMESPACE}:expirations:${fields['bucket']}`, minute: Number(fields['bucket']) };
    const indexes = indexesIn(fields).map((names) => `${NAMESPACE}:index:${names.join(':')}`);
    const [isInBucket, ...scores] = await Promise.all([
      client.sismember(bucket.key, member),
      ...indexes.map((key) => client.zscore(key, id)),
    ]);
    return {
      a: { ...hash, fields, timeToLive: ofHash },
      b: isInBucket === 1 ? { ...bucket, member } : undefined,
      c: ofShadow > 0 ? { ...shadow, timeToLive: ofShadow } : undefined,
      indexes: indexes.flatMap((key, i) => (scores[i] ? [{ key, member: id, score: Number(scores[i]) }] : [])),
      // The stream has the events of all sessions.
      entries: entries.filter(([, entry]) => entry[entry.indexOf('session') + 1] === id).toReversed(),
      groups: groups.map(({ name, lag, pending, retrying, consumers }) => {
        const instances = consumers.filter(({ idle }) => idle < ALIVE).length;
        return { name, lag, pending, retrying, instances };
      }),
    };
  }
}

/** The index entries of a session, as name and value. */
function indexesIn({ index, ended }: Readonly<Record<string, string>>): readonly (readonly string[])[] {
  return index === undefined || ended !== undefined ? [] : JSON.parse(JSON.parse(index));
}
