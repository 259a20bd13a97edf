import { randomBytes } from 'node:crypto';
import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import type { Redis } from 'ioredis';

type ScriptedRedis = Redis & Record<keyof typeof SCRIPTS, (...keysAndArguments: string[]) => Promise<unknown>>;

/**
 * For each operation of the repository, the commands that do the least in one round trip and check only that the
 * session lives: what an operation costs at the very least with this client and this Redis.
 */
export class BareCommands {
  readonly #client: ScriptedRedis;

  /** `prefix`: of the keys, such as `nest:session:` for sessions of the library. */
  constructor(
    client: Redis,
    private readonly prefix: string,
  ) {
    for (const [name, { keys, lua }] of Object.entries(SCRIPTS)) {
      client.defineCommand(name, { numberOfKeys: keys, lua });
    }
    this.#client = client as ScriptedRedis;
  }

  load(id: string): Promise<unknown> {
    return Promise.all([this.#client.hgetall(this.#hash(id)), this.#client.pttl(this.#shadow(id))]);
  }

  async findByPrincipalName(name: string): Promise<void> {
    const ids = await this.#client.smembers(this.#index(name));
    await Promise.all(ids.map((id) => this.load(id)));
  }

  async create(attributes: Readonly<Record<string, string>>): Promise<string> {
    const id = randomBytes(32).toString('base64url');
    const fields = Object.entries(attributes).flatMap(([name, text]) => [`sessionAttr:${name}`, text]);
    await this.#client.bareCreate(
      this.#hash(id),
      this.#shadow(id),
      this.#bucket,
      this.#buckets,
      this.#events,
      now(),
      id,
      ...fields,
    );
    return id;
  }

  touch(id: string): Promise<unknown> {
    return this.#client.bareTouch(this.#hash(id), this.#shadow(id), now());
  }

  save(id: string, name: string, text: string): Promise<unknown> {
    return this.#client.bareSave(this.#hash(id), this.#shadow(id), now(), `sessionAttr:${name}`, text);
  }

  async changeId(id: string): Promise<string> {
    const newId = randomBytes(32).toString('base64url');
    const keys = [
      this.#hash(id),
      this.#shadow(id),
      this.#hash(newId),
      this.#shadow(newId),
      `${this.prefix}sessions:moved:${id}`,
      this.#bucket,
    ];
    await this.#client.bareChangeId(...keys, now(), id, newId);
    return newId;
  }

  delete(id: string): Promise<unknown> {
    return this.#client.bareDelete(this.#hash(id), this.#shadow(id), this.#bucket, this.#events, id);
  }

  #hash(id: string): string {
    return `${this.prefix}sessions:${id}`;
  }

  #shadow(id: string): string {
    return `${this.prefix}sessions:expires:${id}`;
  }

  #index(name: string): string {
    return `${this.prefix}index:${PRINCIPAL_NAME_INDEX_NAME}:${name}`;
  }

  get #buckets(): string {
    return `${this.prefix}expirations`;
  }

  get #bucket(): string {
    return `${this.#buckets}:60000`;
  }

  get #events(): string {
    return `${this.prefix}events`;
  }
}

const now = () => `${Date.now()}`;
const renew = `
  if redis.call('PEXPIRE', KEYS[2], 1800000) == 0 then return 'gone' end
  local last = redis.call('HGET', KEYS[1], 'lastAccessedTime')
  if last < ARGV[1] then redis.call('HSET', KEYS[1], 'lastAccessedTime', ARGV[1]) end`;

const SCRIPTS = {
  bareCreate: {
    keys: 5,
    lua: `
      if redis.call('EXISTS', KEYS[1]) == 1 then return 'collision' end
      redis.call('HSET', KEYS[1], 'creationTime', ARGV[1], 'lastAccessedTime', ARGV[1], 'maxInactiveInterval', 1800,
        unpack(ARGV, 3))
      redis.call('PEXPIRE', KEYS[1], 2100000)
      redis.call('SET', KEYS[2], '', 'PX', 1800000)
      redis.call('SADD', KEYS[3], 'expires:' .. ARGV[2])
      redis.call('ZADD', KEYS[4], 1, 1)
      redis.call('XADD', KEYS[5], '*', 'type', 'created', 'session', ARGV[2])
      return 'created'`,
  },
  bareTouch: {
    keys: 2,
    lua: `${renew}
      redis.call('PEXPIRE', KEYS[1], 2100000)
      return 'touched'`,
  },
  bareSave: {
    keys: 2,
    lua: `${renew}
      redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
      redis.call('PEXPIRE', KEYS[1], 2100000)
      return 'saved'`,
  },
  bareChangeId: {
    keys: 6,
    lua: `${renew}
      if redis.call('EXISTS', KEYS[3]) == 1 then return 'collision' end
      redis.call('PEXPIRE', KEYS[1], 2100000)
      redis.call('RENAME', KEYS[1], KEYS[3])
      redis.call('RENAME', KEYS[2], KEYS[4])
      redis.call('SET', KEYS[5], ARGV[3], 'PX', 60000)
      redis.call('SREM', KEYS[6], 'expires:' .. ARGV[2])
      redis.call('SADD', KEYS[6], 'expires:' .. ARGV[3])
      return 'saved'`,
  },
  bareDelete: {
    keys: 4,
    lua: `
      if redis.call('DEL', KEYS[2]) == 0 then return 'gone' end
      redis.call('HSET', KEYS[1], 'maxInactiveInterval', 0)
      redis.call('PEXPIRE', KEYS[1], 300000)
      redis.call('SREM', KEYS[3], 'expires:' .. ARGV[1])
      redis.call('XADD', KEYS[4], '*', 'type', 'deleted', 'session', ARGV[1])
      return 'deleted'`,
  },
};
