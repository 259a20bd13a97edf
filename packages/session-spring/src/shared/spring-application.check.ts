import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { InvalidSessionOptionsError } from '@nest-session/core';
import { type BackgroundService, InjectConnection, logger, settledWithin } from '@nest-session/redis-events/internal';
import { MODULE, type ResolvedSpringSessionOptions, SPRING_SESSION_OPTIONS } from '../spring-session.options.js';
import { isOfSimpleRepository, type SampledSession, sampleSession } from '../look/spring-look.js';
import { isAlive } from '../read/spring-session.js';
import { SharedKeys, storedIds } from '../keys/spring-keys.js';
import type { StoredForm } from '../values/stored-value.js';

export const NEEDS_JSON =
  "Option `mode: 'shared'` needs JSON, and a Spring application keeps sessions by Java serialization, so that its requests " +
  'fail at those of NestJS: the page "One Redis with Spring Boot" has the Java code for JSON. Then give both ' +
  'applications another namespace, or remove the sessions that are there, at which requests fail from then on';

const MOST_CALLS = 20;
const SAMPLE = 100;
// Milliseconds that the start waits for it. Without Redis, what is seen later tells.
const PATIENCE = 2000;

const SIMPLE =
  'RedisSessionRepository, the default of Spring Boot, which has no events and no index: set ' +
  '`spring.session.data.redis.repository-type=indexed` in the Spring application';

const PLAIN =
  'Sessions in Redis name classes of Java, and option `serializer` of SpringSessionModule says that the Spring application ' +
  'keeps plain JSON. If it does not, its requests fail at objects and lists that are written here: say ' +
  "`new SpringJsonSerializer('typed')`, or 'security'";

@Injectable()
export class SpringApplicationCheck implements BackgroundService {
  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(SharedKeys) private readonly keys: SharedKeys,
    @Inject(SPRING_SESSION_OPTIONS) private readonly options: Pick<ResolvedSpringSessionOptions, 'serializer'>,
  ) {}

  /** @throws InvalidSessionOptionsError when a session is of Java serialization, or all are of the simple repository */
  async start(): Promise<void> {
    const look = this.#look();
    if (await settledWithin(PATIENCE, look)) await look;
    else look.catch(tellLate);
  }

  stop(): void {
    // It has ended with the start.
  }

  async #look(): Promise<void> {
    const ids = await this.#someIds();
    const all = await Promise.all(ids.map((id) => sampleSession(this.client, this.keys.spring, id)));
    // What has ended troubles nobody.
    const live = all.filter((sample) => sample !== undefined).filter(({ session, at }) => isAlive(session, at));
    const forms = new Set(live.flatMap((sample) => [...sample.forms]));
    if (forms.has('java')) throw new InvalidSessionOptionsError(MODULE, [NEEDS_JSON]);
    this.#see(forms);
    await this.#assertIndexed(live);
  }

  #see(forms: ReadonlySet<StoredForm>): void {
    const serializer = this.options.serializer!;
    for (const form of forms) serializer.seeForm(form);
    const hasClasses = forms.has('typed-json') || forms.has('security-json');
    if (hasClasses && serializer.form === 'plain') logger.warn(PLAIN);
  }

  /** Some may be from before a change of the repository: they are what they were until Spring renews them. */
  async #assertIndexed(live: readonly SampledSession[]): Promise<void> {
    const shadows = await Promise.all(live.map(({ id }) => this.client.exists(this.keys.spring.shadow(id))));
    const simple = live.filter((sample, i) => isOfSimpleRepository(sample, shadows[i]!)).length;
    if (simple === 0) return;
    if (simple === live.length) {
      throw new InvalidSessionOptionsError(MODULE, [
        `Option \`mode: 'shared'\` needs RedisIndexedSessionRepository, and the sessions in Redis are of ${SIMPLE}. Then ` +
          'remove these sessions, or open a page of it with one of them',
      ]);
    }
    logger.warn(
      `${simple} of ${live.length} sessions of Spring that were looked at are of ${SIMPLE}, unless it has that by now. ` +
        'Until a request to it renews them, they end without events, and Sessions.endAll() does not find them',
    );
  }

  async #someIds(): Promise<string[]> {
    const ids: string[] = [];
    let calls = 0;
    for await (const page of storedIds(this.client, this.keys.spring)) {
      ids.push(...page);
      if (ids.length >= SAMPLE || ++calls === MOST_CALLS) break;
    }
    return ids.slice(0, SAMPLE);
  }
}

/** The application runs by then. What Redis itself says is left to the lines about the connection. */
function tellLate(error: unknown): void {
  if (error instanceof InvalidSessionOptionsError)
    logger.error(`Sessions cannot be shared with Spring: ${error.message}`);
}
