import { Redis } from 'ioredis';

// What an operation costs at least: each script does the least that the operation needs, and checks only that the
// session lives, or that a new id is free. KEYS: session hash, shadow key, then those of the operation.
const SAVE = `
if redis.call('PEXPIRE', KEYS[2], ARGV[1]) == 0 then return 'gone' end
if tonumber(redis.call('HGET', KEYS[1], 'lastAccessedTime')) < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], 'lastAccessedTime', ARGV[3])
end
redis.call('HSET', KEYS[1], ARGV[4], ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'saved'`;

const TOUCH = `
if redis.call('PEXPIRE', KEYS[2], ARGV[1]) == 0 then return 'gone' end
if tonumber(redis.call('HGET', KEYS[1], 'lastAccessedTime')) < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], 'lastAccessedTime', ARGV[3])
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'touched'`;

const CREATE = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 'collision' end
redis.call('HSET', KEYS[1], 'creationTime', ARGV[3], 'lastAccessedTime', ARGV[3], 'maxInactiveInterval', 1800,
  ARGV[4], ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('SET', KEYS[2], '', 'PX', ARGV[1])
redis.call('SADD', KEYS[3], ARGV[6])
redis.call('XADD', KEYS[4], '*', 'type', 'created', 'session', ARGV[6], 'at', ARGV[3])
return 'created'`;

const DELETE = `
if redis.call('DEL', KEYS[2]) == 0 then return 'gone' end
redis.call('HSET', KEYS[1], 'maxInactiveInterval', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('SREM', KEYS[3], ARGV[6])
redis.call('XADD', KEYS[4], '*', 'type', 'deleted', 'session', ARGV[6], 'at', ARGV[3])
return 'deleted'`;

const CHANGE_ID = `
if redis.call('PEXPIRE', KEYS[2], ARGV[1]) == 0 then return 'gone' end
redis.call('RENAME', KEYS[1], KEYS[5])
redis.call('RENAME', KEYS[2], KEYS[6])
redis.call('SET', KEYS[7], ARGV[7], 'PX', 60000)
redis.call('HSET', KEYS[5], 'lastAccessedTime', ARGV[3])
redis.call('PEXPIRE', KEYS[5], ARGV[2])
redis.call('SREM', KEYS[3], ARGV[6])
redis.call('SADD', KEYS[3], ARGV[7])
redis.call('XADD', KEYS[4], '*', 'type', 'id-changed', 'session', ARGV[7], 'at', ARGV[3])
return 'saved'`;

const SCRIPTS = { bareSave: SAVE, bareTouch: TOUCH, bareCreate: CREATE, bareDelete: DELETE, bareChangeId: CHANGE_ID };

type BareClient = Redis & Record<keyof typeof SCRIPTS, Script>;

type Script = (...args: (string | number)[]) => Promise<string>;

const INTERVAL = 1_800_000;
const GRACE = 300_000;

/** The same operations without what makes them safe. */
export class BareStore {
  readonly #client: BareClient;

  constructor(url: string) {
    const client = new Redis(url);
    for (const [name, lua] of Object.entries(SCRIPTS)) client.defineCommand(name, { lua });
    this.#client = client as BareClient;
  }

  /** A session of ours, so that both decode the same reply. */
  load(id: string): Promise<unknown> {
    const key = `nest:session:sessions:${id}`;
    return Promise.all([this.#client.hgetall(key), this.#client.pttl(`nest:session:sessions:expires:${id}`)]);
  }

  save(id: string, name: string, text: string): Promise<string> {
    return this.#client.bareSave(2, hash(id), shadow(id), INTERVAL, INTERVAL + GRACE, Date.now(), name, text);
  }

  touch(id: string): Promise<string> {
    return this.#client.bareTouch(2, hash(id), shadow(id), INTERVAL, INTERVAL + GRACE, Date.now());
  }

  create(id: string, name: string, text: string): Promise<string> {
    const keys = [hash(id), shadow(id), BUCKET, EVENTS];
    return this.#client.bareCreate(4, ...keys, INTERVAL, INTERVAL + GRACE, Date.now(), name, text, id);
  }

  delete(id: string): Promise<string> {
    const keys = [hash(id), shadow(id), BUCKET, EVENTS];
    return this.#client.bareDelete(4, ...keys, INTERVAL, INTERVAL + GRACE, Date.now(), '', '', id);
  }

  changeId(id: string, newId: string): Promise<string> {
    const keys = [hash(id), shadow(id), BUCKET, EVENTS, hash(newId), shadow(newId), `bare:moved:${id}`];
    return this.#client.bareChangeId(7, ...keys, INTERVAL, INTERVAL + GRACE, Date.now(), '', '', id, newId);
  }

  stop(): void {
    this.#client.disconnect();
  }
}

const BUCKET = 'bare:bucket';
const EVENTS = 'bare:events';

function hash(id: string): string {
  return `bare:${id}`;
}

function shadow(id: string): string {
  return `bare:expires:${id}`;
}
