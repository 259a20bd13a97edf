import { Injectable, Optional } from '@nestjs/common';
import { SessionEventGroups } from '@nest-session/redis';
import { DeadlineInspector } from './deadline.inspector.js';
import { DemoRedis } from './demo.redis.js';

const NAMESPACE = 'nest:session';
const LATEST_ENTRIES = 200;

/** Reads the keys of one session and of its order in Redis, as docs/evidence/redis-data-model.md names them. */
@Injectable()
export class SessionInspector {
  constructor(
    private readonly redis: DemoRedis,
    private readonly deadlines: DeadlineInspector,
    @Optional() private readonly groups?: SessionEventGroups,
  ) {}

  /** Returns undefined if sessions are kept in memory, or while Redis does not reply. */
  async look(id: string): Promise<object | undefined> {
    const { client } = this.redis;
    if (client?.status !== 'ready' || !this.groups) return undefined;
    const member = `expires:${id}`;
    const [hash, shadow] = [`${NAMESPACE}:sessions:${id}`, `${NAMESPACE}:sessions:${member}`];
    const [fields, ofHash, ofShadow, entries, groups] = await Promise.all([
      client.hgetall(hash),
      client.pttl(hash),
      client.pttl(shadow),
      client.xrevrange(`${NAMESPACE}:events`, '+', '-', 'COUNT', LATEST_ENTRIES),
      this.groups.list(),
    ]);
    const bucket = `${NAMESPACE}:expirations:${fields['bucket']}`;
    const isInBucket = await client.sismember(bucket, member);
    const indexes = indexesIn(fields).map((names) => `${NAMESPACE}:index:${names.join(':')}`);
    const scores = await Promise.all(indexes.map((key) => client.zscore(key, id)));
    const order = fields['sessionAttr:order'];
    return {
      a: { key: hash, fields, timeToLive: ofHash },
      b: isInBucket ? { key: bucket, minute: Number(fields['bucket']), member } : undefined,
      c: ofShadow > 0 ? { key: shadow, timeToLive: ofShadow } : undefined,
      indexes: indexes.flatMap((key, i) => (scores[i] ? [{ key, member: id, score: Number(scores[i]) }] : [])),
      // The stream has the events of all sessions.
      entries: entries.filter(([, entry]) => entry[entry.indexOf('session') + 1] === id).toReversed(),
      groups,
      deadline: order === undefined ? undefined : await this.deadlines.look(JSON.parse(order)),
    };
  }
}

/** The index entries of a session, as name and value. */
function indexesIn({ index, ended }: Readonly<Record<string, string>>): readonly (readonly string[])[] {
  return index === undefined || ended !== undefined ? [] : JSON.parse(index);
}
