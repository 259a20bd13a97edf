import { isWellFormedIdOrToken } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import {
  emptyNamespaceProblem,
  ifStray,
  namespaceBesideProblem,
  namespaceProblem,
  patternOf,
} from '@nest-session/redis-events/internal';
import { pages, type ReadPage, type SessionKeys } from '@nest-session/redis/internal';
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

export type SpringKey =
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: 'shadow' }
  /** `minute`: epoch milliseconds at which its sessions end. */
  | { readonly kind: 'bucket'; readonly minute: number }
  | { readonly kind: 'expirations' }
  | { readonly kind: 'index'; readonly isOfPrincipals: boolean };

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
    if (name.startsWith('index:')) return { kind: 'index', isOfPrincipals: name.startsWith(PRINCIPALS) };
    const [, id, minute] = /^(?:sessions:([^:]+)|expirations:(\d{1,16}))$/.exec(name) ?? [];
    if (id !== undefined) return { kind: 'session', id };
    return minute === undefined ? undefined : { kind: 'bucket', minute: Number(minute) };
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

const SCANNED_PER_CALL = 500;

export async function* storedIds(client: Redis, keys: SpringKeys): AsyncIterable<string[]> {
  const pattern = `${patternOf(keys.prefix)}sessions:*`;
  const read = (cursor: string) => client.scan(cursor, 'MATCH', pattern, 'COUNT', SCANNED_PER_CALL);
  for await (const page of pages(read)) {
    yield page.map((key) => keys.read(key)).flatMap((key) => (key?.kind === 'session' ? key.id : []));
  }
}

export const MEMBERS_PER_CALL = 500;

/** The ids that Spring lists as sessions of a user, also of some that have ended. */
export async function listedIds(client: Redis, keys: SpringKeys, principal: string): Promise<string[]> {
  const members = await client.smembersBuffer(keys.index(principal));
  return members.map((member) => readStoredValue(member)).filter(isWellFormedIdOrToken);
}

export function membersOfSet(client: Redis, key: string): AsyncIterable<Buffer[]> {
  const read: ReadPage<Buffer> = async (cursor) => {
    const [next, members] = await client.sscanBuffer(key, cursor, 'COUNT', MEMBERS_PER_CALL);
    return [next.toString(), members];
  };
  return unlessReplaced(pages(read));
}

/** A key of another type in the place of a set has no members. */
export async function* unlessReplaced<T>(all: AsyncIterable<T[]>): AsyncIterable<T[]> {
  try {
    yield* all;
  } catch (error) {
    yield ifStray([])(error);
  }
}
