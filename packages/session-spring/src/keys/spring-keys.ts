import { isWellFormedIdOrToken } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import {
  emptyNamespaceProblem,
  ifStray,
  namespaceBesideProblem,
  namespaceProblem,
  patternOf,
} from '@nest-session/redis-events/internal';
import { pages, type SessionKeys } from '@nest-session/redis/internal';
import { SPRING_PRINCIPAL_NAME } from '../values/spring-principal.js';
import { readStoredValue } from '../values/stored-value.js';

/** How an application uses the sessions that Spring Session keeps. */
export type SpringMode = 'read' | 'shared';

const BESIDE = ':nest';

export function namespaceBeside(ofSpring: string): string {
  return `${ofSpring}${BESIDE}`;
}

export function namespaceOfSpring(beside: string): string {
  return beside.slice(0, -BESIDE.length);
}

/** How an application uses the namespace that a command is for, where that may be beside one of Spring. */
export function modeOfNamespace(namespace: string | undefined): SpringMode | undefined {
  return namespace?.endsWith(BESIDE) ? 'shared' : undefined;
}

/** What is wrong with a namespace: the keys of Spring are asked for by name, so it may have every name there. */
export function namespaceProblemWith(mode: SpringMode | undefined): (namespace: string) => string | undefined {
  if (mode === 'read') return emptyNamespaceProblem;
  return mode === 'shared' ? namespaceBesideProblem : namespaceProblem;
}

/** `principals`: of the index by which users are found. */
export type SpringKey =
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: 'shadow' | 'bucket' | 'expirations' | 'index' | 'principals' };

const PRINCIPALS = `index:${SPRING_PRINCIPAL_NAME}:`;

export class SpringKeys {
  readonly prefix: string;
  /** The sorted set that tells when sessions end, where there are no buckets. */
  readonly expirations: string;

  constructor(readonly namespace: string) {
    this.prefix = `${namespace}:`;
    this.expirations = `${this.prefix}sessions:expirations`;
  }

  session(id: string): string {
    return `${this.prefix}sessions:${id}`;
  }

  shadow(id: string): string {
    return `${this.prefix}sessions:expires:${id}`;
  }

  /** Of the sessions that end in a minute. `minute`: when that is over, in epoch milliseconds. */
  bucket(minute: number): string {
    return `${this.prefix}expirations:${minute}`;
  }

  index(principal: string): string {
    return `${this.prefix}${PRINCIPALS}${principal}`;
  }

  /** Undefined for a key of somebody else. */
  read(key: string): SpringKey | undefined {
    if (!key.startsWith(this.prefix)) return undefined;
    const name = key.slice(this.prefix.length);
    if (key === this.expirations) return { kind: 'expirations' };
    if (name.startsWith('sessions:expires:')) return { kind: 'shadow' };
    if (name.startsWith('index:')) return { kind: name.startsWith(PRINCIPALS) ? 'principals' : 'index' };
    const [, id, minute] = /^(?:sessions:([^:]+)|expirations:(\d{1,16}))$/.exec(name) ?? [];
    if (id !== undefined) return { kind: 'session', id };
    return minute === undefined ? undefined : { kind: 'bucket' };
  }
}

export class SharedKeys {
  readonly spring: SpringKeys;

  constructor(
    namespace: string,
    /** Of the namespace beside. Its `ends` has all sessions that are known. */
    readonly own: SessionKeys,
    private readonly database: number,
  ) {
    this.spring = new SpringKeys(namespace);
  }

  /** STRING: when somebody signed in to a session here, and who, after a space. */
  signedIn(id: string): string {
    return `${this.own.prefix}sessions:signed-in:${id}`;
  }

  /** STRING, empty: an instance looks at all sessions that Spring has. */
  get scanning(): string {
    return `${this.own.prefix}scanning`;
  }

  /** The channel of Spring's created events, before the id. */
  get createdChannel(): string {
    return `${this.spring.prefix}event:${this.database}:created:`;
  }
}

const PER_CALL = 500;

export async function* storedIds(client: Redis, keys: SpringKeys): AsyncIterable<string[]> {
  const pattern = `${patternOf(keys.prefix)}sessions:*`;
  const read = (cursor: string) => client.scan(cursor, 'MATCH', pattern, 'COUNT', PER_CALL);
  for await (const page of pages(read)) {
    yield page.map((key) => keys.read(key)).flatMap((key) => (key?.kind === 'session' ? key.id : []));
  }
}

/** The ids that Spring lists as sessions of a user, also of some that have ended. */
export async function listedIds(client: Redis, keys: SpringKeys, principal: string): Promise<string[]> {
  const members = await client.smembersBuffer(keys.index(principal));
  return members.map((member) => readStoredValue(member)).filter(isWellFormedIdOrToken);
}

/** A key of another type in the place of a set has no members. */
export function membersOfSet(client: Redis, key: string): AsyncIterable<Buffer[]> {
  const nothing: [Buffer, Buffer[]] = [Buffer.from('0'), []];
  return pages(async (cursor) => {
    const [next, members] = await client.sscanBuffer(key, cursor, 'COUNT', PER_CALL).catch(ifStray(nothing));
    return [next.toString(), members];
  });
}
