import { Inject, Injectable, Optional } from '@nestjs/common';
import type { Redis } from 'ioredis';
import {
  listAsGiven,
  PRINCIPAL_ATTRIBUTE,
  SESSION_TELEMETRY,
  type SessionTelemetry,
} from '@nest-session/core/internal';
import type {
  AttributeChanges,
  CreateSession,
  SessionChange,
  SessionRecord,
  SessionRepositoryOptions,
  UpdateSession,
  WriteReply,
} from '@nest-session/core/store';
import {
  ATTRIBUTE_FIELD,
  hashOfValue,
  leaveRevocationMark,
  lookUpListed,
  SESSION_REPOSITORY_OPTIONS,
} from '@nest-session/redis/internal';
import { IndexedSessionRepository, PRINCIPAL_NAME_INDEX_NAME, SessionStateError } from '@nest-session/core';
import { redisTime, RequestConnection, type ScriptsOn, scriptsOn } from '@nest-session/redis-events/internal';
import { attributesHere, nameInSpring, SECURITY_CONTEXT, SPRING_PRINCIPAL_NAME } from '../values/spring-principal.js';
import { EXPIRED_FIELD, isAlive, readSpringFields, readSpringSession } from '../read/spring-session.js';
import { type ResolvedSpringSessionOptions, SPRING_SESSION_OPTIONS } from '../spring-session.options.js';
import { SharedScripts } from '../scripts/shared/shared.scripts.js';
import type { OwnClasses } from '../values/own-classes.js';
import { readSecurityContext } from '../values/security-context.js';
import { listedIds, SharedKeys } from '../keys/spring-keys.js';

type Fields = readonly (readonly [name: string, stored: Buffer])[];

interface SharedMemo {
  /** The name of a user who is signed in by Spring Security alone. */
  readonly springName: string | undefined;
}

/** Undefined when the session is not alive. `signedIn`: when and who, as the key beside has it. */
export function toSharedRecord(
  id: string,
  fields: Fields,
  signedIn: string | null,
  now: number,
  own?: OwnClasses,
): SessionRecord | undefined {
  const isTime = ([name]: Fields[number]) => !name.startsWith(ATTRIBUTE_FIELD) || name === EXPIRED_FIELD;
  const session = readSpringSession(fields.filter(isTime));
  if (!session || session.maxInactiveInterval === 0 || !isAlive(session, now)) return undefined;
  const { creationTime, lastAccessedTime, maxInactiveInterval } = session;
  const { attributes, springName } = attributesHere(fields, own);
  return {
    id,
    creationTime,
    lastAccessedTime,
    maxInactiveInterval,
    absoluteTimeout: -1,
    authenticatedAt: signInOf(attributes, signedIn),
    attributes,
    timeToLive: maxInactiveInterval < 0 ? undefined : lastAccessedTime + maxInactiveInterval * 1000 - now,
    memo: { springName } satisfies SharedMemo,
  };
}

/** It counts for who signed in then. Spring may have signed in somebody else since. */
function signInOf(attributes: ReadonlyMap<string, string>, beside: string | null): number | undefined {
  const [, at, name] = /^(\d+) (.*)$/s.exec(beside ?? '') ?? [];
  const signedIn = name === '' ? undefined : JSON.stringify(name);
  return at !== undefined && signedIn === attributes.get(PRINCIPAL_ATTRIBUTE) ? Number(at) : undefined;
}

type Options = Pick<ResolvedSpringSessionOptions, 'serializer'> &
  Partial<Pick<ResolvedSpringSessionOptions, 'ownClasses'>>;

/**
 * Shares sessions with an application of Spring Session that keeps them in its indexed repository, as JSON. What Spring
 * reads is written as Spring writes it; what else we need is in keys of our own. A load takes one round trip, and so
 * does a change, which is one script. Spring hears of changes as of those of another of its instances.
 */
@Injectable()
export class SharedSessionRepository extends IndexedSessionRepository {
  readonly #scripts: ScriptsOn<SharedScripts>;

  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(SharedKeys) private readonly keys: SharedKeys,
    @Inject(SPRING_SESSION_OPTIONS) private readonly redis: Options,
    @Inject(SESSION_REPOSITORY_OPTIONS) options: SessionRepositoryOptions = {},
    @Optional() @Inject(SESSION_TELEMETRY) telemetry?: Pick<SessionTelemetry, 'traceparent'>,
  ) {
    super(options);
    listAsGiven(this);
    this.#scripts = scriptsOn(
      (client) => new SharedScripts(client, keys, telemetry && (() => telemetry.traceparent())),
    );
  }

  protected async load(ids: readonly string[]): Promise<SessionRecord[]> {
    const [now, ...read] = await Promise.all([this.readClock(), ...ids.map((id) => this.#read(id))]);
    return read.flatMap(
      ([id, fields, signedIn]) => toSharedRecord(id, fields, signedIn, now, this.redis.ownClasses) ?? [],
    );
  }

  async #read(id: string): Promise<[id: string, fields: [string, Buffer][], signedIn: string | null]> {
    const [key, beside] = [this.keys.spring.session(id), this.keys.signedIn(id)];
    const [fields, signedIn] = await this.connection.run(
      (client) => Promise.all([readSpringFields(client, key), client.get(beside)]),
      key,
    );
    return [id, fields, signedIn];
  }

  protected async lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    if (indexName !== PRINCIPAL_NAME_INDEX_NAME) return [];
    const { spring } = this.keys;
    const source = {
      connection: this.connection,
      grouped: (some: readonly string[]) => [[this.keys.own, some] as const],
      load: (some: readonly string[]) => this.load(some),
    };
    const listed = () => this.connection.run((client) => listedIds(client, spring, value), spring.index(value));
    // Spring leaves sessions under a former name that it has not loaded itself, and those that are over at first.
    return lookUpListed(listed, source, (record) => isOf(value, record));
  }

  /** Nobody signs in here by a request that began before. What Spring signs in is up to Spring. */
  protected override async endListed(indexName: string, value: string, except: readonly string[]): Promise<number> {
    const { own } = this.keys;
    const mark = own.revocationMark(indexName, hashOfValue(value));
    await this.connection.write((client) => leaveRevocationMark(client, mark, false), own.prefix);
    return super.endListed(indexName, value, except);
  }

  protected override async readClock(): Promise<number> {
    return this.connection.run(redisTime);
  }

  protected override endEvery(): Promise<void> {
    throw new SessionStateError(
      "Not every session can be ended with `mode: 'shared'`, because Spring has no such call: end those of a user with " +
        'Sessions.endAll()',
    );
  }

  protected async write(change: SessionChange): Promise<WriteReply> {
    assertPossible(change);
    const { prefix } = this.keys.own;
    switch (change.kind) {
      case 'create':
        return this.connection.write((client) => this.#create(client, change), prefix);
      case 'update':
        return this.connection.write((client) => this.#update(client, change), prefix);
      case 'delete':
        return this.connection.write((client) => this.#scripts(client).delete(change), prefix);
      case 'touch': {
        const nothing = { kind: 'update', id: change.id, attributes: new Map(), indexes: new Map() } as const;
        const touch = (client: Redis) => this.#update(client, nothing);
        // No request waits for it.
        const { outcome } = await this.connection.write(touch, prefix, { awaitsReplicas: false });
        return { outcome: outcome === 'saved' ? 'touched' : outcome === 'forwarded' ? 'forwarded' : 'gone' };
      }
    }
  }

  #create(client: Redis, change: CreateSession): Promise<WriteReply> {
    const principal = nameIn(change.attributes.get(PRINCIPAL_ATTRIBUTE)) ?? '';
    const toCreate = { ...change, attributes: inSpring(change.attributes) };
    return this.#scripts(client).create(toCreate, principal, this.redis.serializer!.form);
  }

  #update(client: Redis, change: UpdateSession): Promise<WriteReply> {
    const attributes = new Map(inSpring(change.attributes));
    const text = change.attributes.get(PRINCIPAL_ATTRIBUTE);
    const expected = change.expected && { ...change.expected, name: nameInSpring(change.expected.name) };
    const isChanged = change.indexes.has(PRINCIPAL_NAME_INDEX_NAME);
    // The user who is signed in here is not the one that Spring Security knows.
    if (isChanged && !attributes.has(SECURITY_CONTEXT)) attributes.set(SECURITY_CONTEXT, null);
    return this.#scripts(client).change(
      { ...change, attributes, expected, device: undefined },
      {
        before: (change.memo as SharedMemo | undefined)?.springName,
        after: isChanged ? (nameIn(text) ?? null) : undefined,
      },
    );
  }
}

/** Whether this user is signed in, or somebody whose name only Spring can read. */
function isOf(principal: string, { attributes }: SessionRecord): boolean {
  const all = new Map(attributes);
  const name = all.get(PRINCIPAL_ATTRIBUTE);
  return name === undefined ? all.has(SECURITY_CONTEXT) : name === JSON.stringify(principal);
}

/** A name that Spring Security has in its context is left to that: it would stay when somebody else signs in. */
function inSpring(attributes: AttributeChanges): AttributeChanges {
  const context = attributes.get(SECURITY_CONTEXT);
  const named = typeof context === 'string' ? readSecurityContext(context)?.user?.name : undefined;
  const isNamed = named !== undefined && named === nameIn(attributes.get(PRINCIPAL_ATTRIBUTE));
  return new Map(
    [...attributes].map(([name, text]) => [nameInSpring(name), isNamed && name === PRINCIPAL_ATTRIBUTE ? null : text]),
  );
}

function nameIn(text: string | null | undefined): string | undefined {
  const name: unknown = typeof text === 'string' ? JSON.parse(text) : undefined;
  return typeof name === 'string' ? name : undefined;
}

/** @throws SessionStateError for what Spring does not have */
function assertPossible(change: SessionChange): void {
  if (change.kind !== 'create' && change.kind !== 'update') return;
  const problem = problemOf(change);
  if (problem) throw new SessionStateError(`${problem}: it is shared with Spring Session (option \`mode: 'shared'\`)`);
}

function problemOf({
  maxInactiveInterval = 1,
  absoluteTimeout = -1,
  indexes,
  attributes,
}: CreateSession | UpdateSession): string | undefined {
  if (maxInactiveInterval < 0) return 'A session must have an idle timeout, without which Spring deletes it';
  if (absoluteTimeout >= 0) return 'A session can have no absolute timeout, which Spring would not keep';
  const principal = nameIn(attributes.get(PRINCIPAL_ATTRIBUTE));
  if (principal !== undefined && indexes.get(PRINCIPAL_NAME_INDEX_NAME) !== principal)
    return 'The name of a user has at most 256 bytes, and does not begin with `sha256:`';
  if (attributes.has(SPRING_PRINCIPAL_NAME))
    return `Attribute ${SPRING_PRINCIPAL_NAME} is the principal: call session.signIn(name), or assign session.principalName`;
  const other = [...indexes].find(([name, value]) => value !== null && name !== PRINCIPAL_NAME_INDEX_NAME);
  return other && `A session cannot be in the index ${JSON.stringify(other[0])}`;
}
