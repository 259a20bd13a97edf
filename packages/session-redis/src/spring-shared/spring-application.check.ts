import { Inject, Injectable } from '@nestjs/common';
import { InvalidSessionOptionsError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import { REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { InjectConnection } from '../connection/redis-connections.js';
import { pages } from '../expiration/scan-pages.js';
import { ATTRIBUTE_FIELD } from '../keys/session-keys.js';
import { readSpringFields } from '../spring/spring-fields.js';
import { formOf } from '../spring-values/stored-value.js';
import type { BackgroundService } from '../timing/background-service.js';
import { settledWithin } from '../timing/settled-within.js';
import { SharedKeys } from '../spring/shared-keys.js';
import type { SpringJsonSerializer } from '../spring-values/spring-json.serializer.js';

const SCANNED_PER_CALL = 500;
const MOST_CALLS = 20;
const SAMPLE = 100;
// Milliseconds that the start waits for it. Without Redis, what is seen later tells.
const PATIENCE = 2000;

const JAVA =
  "Option `spring: 'shared'` needs JSON, and the Spring application keeps its sessions by Java serialization: run " +
  '`nest-session-redis spring`, which prints the Java code for JSON';

/** Looks at some sessions at the start, for the JSON that the Spring application keeps, and refuses what cannot be shared. */
@Injectable()
export class SpringApplicationCheck implements BackgroundService {
  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(SharedKeys) private readonly keys: SharedKeys,
    @Inject(REDIS_SESSION_OPTIONS) private readonly options: Pick<ResolvedRedisSessionOptions, 'serializer'>,
  ) {}

  /** @throws InvalidSessionOptionsError for sessions of Java serialization */
  async start(): Promise<void> {
    const look = this.#look();
    if (await settledWithin(PATIENCE, look)) await look;
    else look.catch(() => undefined);
  }

  stop(): void {
    // It has ended with the start.
  }

  async #look(): Promise<void> {
    const ids = await this.#someIds();
    const all = await Promise.all(ids.map((id) => readSpringFields(this.client, this.keys.spring.session(id))));
    const values = all.flat().filter(([name, stored]) => name.startsWith(ATTRIBUTE_FIELD) && stored.length > 0);
    const forms = new Set(values.map(([, stored]) => formOf(stored)));
    if (forms.size === 1 && forms.has('java')) throw new InvalidSessionOptionsError('RedisSessionModule', [JAVA]);
    const serializer = this.options.serializer as SpringJsonSerializer;
    for (const [, stored] of values) if (formOf(stored) !== undefined) serializer.see(stored.toString());
  }

  async #someIds(): Promise<string[]> {
    const ids: string[] = [];
    const { spring } = this.keys;
    const read = (cursor: string) =>
      this.client.scan(cursor, 'MATCH', `${spring.prefix}sessions:*`, 'COUNT', SCANNED_PER_CALL);
    let calls = 0;
    for await (const page of pages(read)) {
      for (const key of page) {
        const known = spring.read(key);
        if (known?.kind === 'session') ids.push(known.id);
      }
      if (ids.length >= SAMPLE || ++calls === MOST_CALLS) break;
    }
    return ids.slice(0, SAMPLE);
  }
}
