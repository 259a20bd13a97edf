import { Inject, Injectable, Optional } from '@nestjs/common';
import type { AttributeSerializer, SessionEvent } from '@nest-session/core';
import { shownText } from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import type { SessionEncryption } from '../encryption/session-encryption.js';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import { InjectConnection } from '../connection/redis-connections.js';
import { isReply } from '../connection/reply.errors.js';
import { toSessionEvent } from './session-event.mapper.js';
import { fieldOf, nameOf, sessionIdOf, type StreamEntry } from './stream-entry.js';

type Hash = Record<string, string>;

interface Options extends Pick<ResolvedRedisSessionOptions, 'serializer'> {
  /** @default none */
  readonly encryption?: SessionEncryption | undefined;
}

/** Makes the event of an entry, with the data in the entry if there is any, else with the data of the session now. */
@Injectable()
export class SessionEventLoader {
  readonly #serializer: AttributeSerializer;
  readonly #encryption: SessionEncryption | undefined;

  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(REDIS_SESSION_OPTIONS) { serializer, encryption }: Options,
    @Optional() @Inject(SESSION_OPTIONS) private readonly session?: Pick<ResolvedSessionOptions, 'ids'>,
  ) {
    this.#serializer = serializer;
    this.#encryption = encryption;
  }

  /** Undefined for an entry of a kind that this version does not know, such as one of a newer version. */
  async load(entry: StreamEntry, attempt = 1): Promise<SessionEvent | undefined> {
    const kept = fieldOf(entry, 'data');
    const hash = kept === undefined ? await this.#dataOf(entry) : (JSON.parse(kept) as Hash);
    const details = { ids: this.session?.ids, encryption: this.#encryption, attempt };
    return toSessionEvent(entry, hash, this.#serializer, details);
  }

  /** `event.id` as log lines show it, as those of the dispatcher do. An entry without an event has its own name. */
  shownIdOf(entry: StreamEntry): string {
    const [type, sessionId] = [fieldOf(entry, 'type'), sessionIdOf(entry)];
    if (type === undefined || sessionId === undefined) return nameOf(entry);
    return shownText(`${type}:${this.session?.ids.shown(sessionId) ?? sessionId}`);
  }

  async #dataOf(entry: StreamEntry): Promise<Hash> {
    const sessionId = sessionIdOf(entry);
    if (sessionId === undefined) return {};
    return this.client.hgetall(entry.partition.session(sessionId)).catch((error: unknown) => {
      // A stray key in the place of the session hash is no session.
      if (isReply(error, 'WRONGTYPE')) return {};
      throw error;
    });
  }
}
