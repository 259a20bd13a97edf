import { Inject, Injectable } from '@nestjs/common';
import { JsonAttributeSerializer, PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import {
  type ForeignSessionData,
  ForeignSessions,
  PRINCIPAL_ATTRIBUTE,
  SessionIndexes,
} from '@nest-session/core/internal';
import { ifStray, RequestConnection, type ScriptsOn } from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import { REQUEST_SESSION_SCRIPTS, SESSION_REPOSITORY_OPTIONS } from '../configuration/redis-session.tokens.js';
import { SessionEncryption } from '../encryption/session-encryption.js';
import { TimedSessions } from '../expiration/timed-sessions.js';
import { hashedIndexes } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { LimitAcrossPartitions } from '../limits/limit-across-partitions.js';
import { ListedSessions } from './listed-sessions.js';
import { NO_KEY } from './session-hash.js';
import type { RedisRepositoryOptions } from './redis-session.repository.js';
import type { SessionScripts, TakenOverSession } from '../scripts/session/session.scripts.js';

// Milliseconds after which no request of the other library writes an entry again that it has loaded.
const LATEST_WRITE = 3_600_000;

const REFUSES_PLAIN =
  "`encryption.plainValues: 'refuse'` of RedisSessionModule.forRoot() refuses the sessions of connect-redis, which are " +
  'plain: whoever can write to Redis could plant one. Remove `plainValues` until they are taken over. Then set it, and ' +
  'remove the option `secret`.';

@Injectable()
export class RedisForeignSessions extends ForeignSessions {
  readonly #listed: ListedSessions;

  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(REQUEST_SESSION_SCRIPTS) private readonly scripts: ScriptsOn<SessionScripts>,
    @Inject(SESSION_REPOSITORY_OPTIONS) private readonly options: RedisRepositoryOptions,
    @Inject(LimitAcrossPartitions) private readonly limit: LimitAcrossPartitions,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(TimedSessions) private readonly ends?: Pick<TimedSessions, 'begin'>,
  ) {
    super();
    this.#listed = new ListedSessions(connection, scripts, partitions);
  }

  override get refusal(): string | undefined {
    return this.options.encryption?.rules.plainValues === 'refuse' ? REFUSES_PLAIN : undefined;
  }

  async move(
    key: string,
    id: string,
    read: (text: string) => ForeignSessionData | undefined,
    device?: string,
  ): Promise<boolean> {
    const { data, timeToLive } = await this.#find(key, read);
    if (!data) return false;
    const session = { ...this.#sessionOf(id, data), device };
    const isStored = await this.#listed.withoutStrayIndexes(session.indexes, () =>
      this.#store(session, timeToLive, markLife(timeToLive, data)),
    );
    // Delete the entry last, so that no session is lost if the process ends in between.
    await this.connection.run((client) => client.unlink(key), key);
    return isStored;
  }

  async end(key: string, id: string, read: (text: string) => ForeignSessionData | undefined): Promise<boolean> {
    const { data, timeToLive } = await this.#find(key, read);
    if (!data || timeToLive === 0 || timeToLive === NO_KEY) return false;
    const mark = (client: Redis) => this.scripts(client).markTakenOver(id, markLife(timeToLive, data));
    await this.connection.write(mark, this.partitions.of(id).prefix);
    await this.connection.run((client) => client.unlink(key), key);
    return true;
  }

  async #find(key: string, read: (text: string) => ForeignSessionData | undefined) {
    const [text, timeToLive] = await this.connection.run(
      (client) => Promise.all([client.get(key).catch(ifStray(null)), client.pttl(key)]),
      key,
    );
    return { data: text === null ? undefined : read(text), timeToLive };
  }

  async #store(session: TakenOverSession, timeToLive: number, markedFor: number): Promise<boolean> {
    const { id, indexes } = session;
    const { encryption = new SessionEncryption(), maxSessions } = this.options;
    const takeOver = (client: Redis) => async (creation: TakenOverSession) => ({
      outcome: await this.scripts(client).takeOver(creation, timeToLive, markedFor),
    });
    const { prefix } = this.partitions.of(id);
    const store = async () =>
      (await this.connection.write((client) => encryption.create(session, takeOver(client)), prefix)).outcome;
    const principal = maxSessions && indexes.get(PRINCIPAL_NAME_INDEX_NAME);
    const outcome = await (principal ? this.limit.takeOver(id, principal, store) : store());
    if (outcome === 'created') this.ends?.begin(id);
    return outcome === 'created';
  }

  /** @throws SessionIndexError when the value of an index cannot be derived */
  #sessionOf(id: string, { attributes, principalName }: ForeignSessionData): TakenOverSession {
    const { timeout = 1800, anonymousTimeout = timeout, absoluteTimeout = -1 } = this.options;
    const { serializer = new JsonAttributeSerializer() } = this.options;
    const { maxAttributes = Infinity, maxSessionSize = Infinity } = this.options;
    const values = new Map(attributes);
    if (principalName !== undefined) values.set(PRINCIPAL_ATTRIBUTE, principalName);
    const texts = new Map([...values].map(([name, value]) => [name, serializer.serialize(value)]));
    const indexes = hashedIndexes((this.options.indexes ?? new SessionIndexes()).changesOf(texts, serializer));
    const times = { maxInactiveInterval: principalName === undefined ? anonymousTimeout : timeout, absoluteTimeout };
    return { id, ...times, attributes: texts, indexes, bounds: { maxAttributes, maxSessionSize } };
  }
}

/** The mark outlives the entry, also one that a request of the other library writes again which had loaded it. */
function markLife(timeToLive: number, { longestLife = 0 }: ForeignSessionData): number {
  return timeToLive < 0 ? -1 : timeToLive + longestLife + LATEST_WRITE;
}
