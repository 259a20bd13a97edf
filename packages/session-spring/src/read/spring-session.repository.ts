import { Inject, Injectable } from '@nestjs/common';
import slotOf from 'cluster-key-slot';
import {
  IndexedSessionRepository,
  PRINCIPAL_NAME_INDEX_NAME,
  SessionStateError,
  SessionStoreError,
} from '@nest-session/core';
import { isOwnAttribute, listAsGiven, PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import type { SessionChange, SessionRecord, SessionRepositoryOptions, WriteReply } from '@nest-session/core/store';
import { isOfCluster, redisTime, RequestConnection, scriptsOn } from '@nest-session/redis-events/internal';
import { batchesOf, SESSION_REPOSITORY_OPTIONS } from '@nest-session/redis/internal';
import { type ResolvedSpringSessionOptions, SPRING_SESSION_OPTIONS } from '../spring-session.options.js';
import { type RenewedKeys, SpringScripts } from '../scripts/spring/spring.scripts.js';
import type { OwnClasses } from '../values/own-classes.js';
import { nameInIndex, SECURITY_CONTEXT, SPRING_PRINCIPAL_NAME } from '../values/spring-principal.js';
import { isAlive, readSpringFields, readSpringSession, type SpringSession } from './spring-session.js';
import { listedIds, SpringKeys } from '../keys/spring-keys.js';

const READ_ONLY =
  "This application reads and renews the sessions of Spring Session, and changes nothing else: option `mode: 'read'` of " +
  'SpringSessionModule. Let the Spring application change, sign in and end its sessions.';

const ON_SEVERAL_NODES =
  'On a Redis Cluster, no session of RedisIndexedSessionRepository can be renewed here, because its keys are on several ' +
  "nodes: option `mode: 'read'` of SpringSessionModule. Let a request to the Spring application renew it.";

const LOADED_AT_ONCE = 500;

type Options = Pick<ResolvedSpringSessionOptions, 'namespace' | 'connection'> &
  Partial<Pick<ResolvedSpringSessionOptions, 'ownClasses'>>;

/**
 * Reads the sessions that Spring Session keeps in Redis: of either repository, with any of its serializers. A load
 * takes one round trip. A session is alive until `lastAccessedTime` and `maxInactiveInterval` have passed, by the clock
 * of Redis. Loads renew nothing. `touch()` renews a session as a request of Spring does. Calls that would change
 * something else throw a SessionStateError.
 */
@Injectable()
export class SpringSessionRepository extends IndexedSessionRepository {
  readonly #keys: SpringKeys;
  readonly #scripts = scriptsOn((client) => new SpringScripts(client));
  readonly #isOnCluster: boolean;
  readonly #own: OwnClasses | undefined;

  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(SPRING_SESSION_OPTIONS)
    { namespace, connection: address, ownClasses }: Options,
    @Inject(SESSION_REPOSITORY_OPTIONS) options: SessionRepositoryOptions = {},
  ) {
    super(options);
    listAsGiven(this);
    this.#keys = new SpringKeys(namespace);
    this.#isOnCluster = isOfCluster(address);
    this.#own = ownClasses;
  }

  protected async load(ids: readonly string[], only?: readonly string[]): Promise<SessionRecord[]> {
    return (await this.#findAlive(ids)).map(([id, session]) => recordOf(id, session, only));
  }

  async #findAlive(ids: readonly string[]): Promise<[id: string, session: SpringSession][]> {
    const keys = ids.map((id) => this.#keys.session(id));
    const reads = keys.map((key) => this.connection.run((client) => readSpringFields(client, key), key));
    const [now, ...all] = await Promise.all([this.readClock(), ...reads]);
    return all.flatMap((fields, i) => {
      const session = readSpringSession(fields, this.#own);
      return session && isAlive(session, now) ? [[ids[i]!, session]] : [];
    });
  }

  /** Only the indexed repository of Spring Session keeps an index, that of principals. */
  protected async lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    if (indexName !== PRINCIPAL_NAME_INDEX_NAME) return [];
    const ids = await this.connection.run((client) => listedIds(client, this.#keys, value), this.#keys.index(value));
    const found: SessionRecord[] = [];
    // Sessions that are over stay in it, so there may be many.
    for (const some of batchesOf(ids, LOADED_AT_ONCE)) {
      for (const [id, session] of await this.#findAlive(some))
        // Spring leaves a session under a name that was unknown to the request that signed in somebody else.
        if (isOf(value, session)) found.push(recordOf(id, session));
    }
    return found;
  }

  protected override async readClock(): Promise<number> {
    return this.connection.run(redisTime);
  }

  protected write(change: SessionChange): Promise<WriteReply> {
    return change.kind === 'touch' ? this.#renew(change.id) : readOnly();
  }

  async #renew(id: string): Promise<WriteReply> {
    const keys = await this.#keysToRenew(id);
    const { prefix } = this.#keys;
    const reply = await this.connection.write((client) => this.#scripts(client).renew(keys, prefix, id), keys[0]);
    if (reply.outcome === 'unreadable') {
      throw new SessionStoreError(
        `The session was not renewed: its ${reply.time} in Redis has a form that Spring Session does not write`,
      );
    }
    return reply;
  }

  async #keysToRenew(id: string): Promise<RenewedKeys> {
    const [session, shadow] = [this.#keys.session(id), this.#keys.shadow(id)];
    const all = [session, shadow, this.#keys.expirations] as const;
    // With a hash tag in the namespace, they are in one slot.
    if (!this.#isOnCluster || new Set(all.map(slotOf)).size === 1) return all;
    const isIndexed = (await this.connection.run((client) => client.exists(shadow), shadow)) > 0;
    if (isIndexed) throw new SessionStateError(ON_SEVERAL_NODES);
    return [session];
  }

  protected override endListed(): Promise<number> {
    return readOnly();
  }

  protected override endEvery(): Promise<void> {
    return readOnly();
  }
}

function readOnly(): Promise<never> {
  return Promise.reject(new SessionStateError(READ_ONLY));
}

/** Whether this user is signed in, or somebody whose name only Spring can read. */
function isOf(principal: string, session: SpringSession): boolean {
  const { attributes } = session;
  const isSignedIn = attributes.has(SPRING_PRINCIPAL_NAME) || attributes.has(SECURITY_CONTEXT);
  return isSignedIn && (principalNameOf(session) ?? principal) === principal;
}

/** A value that cannot be read is no attribute. */
function recordOf(id: string, session: SpringSession, only?: readonly string[]): SessionRecord {
  const { attributes, user: _, isExpired: __, ...times } = session;
  const all = [...attributes].filter(([name]) => !isOwnAttribute(name));
  const texts = [...all, [PRINCIPAL_ATTRIBUTE, principalNameOf(session)] as const]
    .filter(([name, value]) => value !== undefined && (only?.includes(name) ?? true))
    .map(([name, value]) => [name, JSON.stringify(value)] as const);
  // Without a time to live, no load is followed by a renewal.
  return { id, ...times, absoluteTimeout: -1, attributes: texts, timeToLive: undefined };
}

/** Spring looks into the context of Spring Security, where no attribute names the user. */
function principalNameOf({ attributes, user }: SpringSession): string | undefined {
  if (!attributes.has(SPRING_PRINCIPAL_NAME)) return user?.name;
  return nameInIndex(attributes.get(SPRING_PRINCIPAL_NAME)) || undefined;
}
