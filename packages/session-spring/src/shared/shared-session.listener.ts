import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import {
  type BackgroundService,
  FailureLog,
  InjectConnection,
  type KeyspaceNotification,
  type KeyspaceNotificationListener,
  logger,
  patternOf,
  type RedisNodes,
  RETRY,
  untilSound,
} from '@nest-session/redis-events/internal';
import { SHADOW_KEY_LISTENER } from '@nest-session/redis/internal';
import { type ResolvedSpringSessionOptions, SPRING_SESSION_OPTIONS } from '../spring-session.options.js';
import { type Heard, OF_UNKNOWN_FORM } from '../scripts/shared/shared.scripts.js';
import { NEEDS_JSON } from './spring-application.check.js';
import { SharedKeys } from '../keys/spring-keys.js';
import { SharedSessionSweeper } from './shared-session.sweeper.js';

// Milliseconds. Every instance hears everything, so each collects it, and the first one to look records it.
const COLLECTION = 50;
// Then it looks at all sessions instead.
const MOST_COLLECTED = 10_000;
// What was before it may be on its way from another connection.
const MOST_TRIES = 20;

/** How a message of Java serialization begins, in UTF-8 as it arrives. */
const OF_JAVA = '\ufffd\ufffd\u0000\u0005';

interface Collected extends Heard {
  readonly tries: number;
}

/**
 * Hears what Spring does to shared sessions: its own created message, and key events of ends and new ids. It only makes
 * events faster: the sweeper finds what it misses, except for the creation of a session that nobody has heard of for
 * two minutes.
 */
@Injectable()
export class SharedSessionListener implements BackgroundService {
  readonly #stopping = new AbortController();
  readonly #failures = new FailureLog(
    'Sessions that Spring has changed could not be looked at, and will be',
    'Sessions that Spring has changed are looked at again',
  );
  #heard: Collected[] = [];
  /** The next id of a session, by the one before. */
  readonly #laterIds = new Map<string, string>();
  #hasMissed = false;
  #hasRefusedJava = false;
  /** The former key of a rename whose later one comes next. */
  #renamed: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();
  #catchingUp: Promise<void> | undefined;

  constructor(
    @Inject(SHADOW_KEY_LISTENER) private readonly notifications: KeyspaceNotificationListener,
    @InjectConnection('subscriber') private readonly nodes: RedisNodes,
    @Inject(SharedKeys) private readonly keys: SharedKeys,
    @Inject(SharedSessionSweeper) private readonly sweeper: Pick<SharedSessionSweeper, 'lookAt' | 'lookAtAll'>,
    @Inject(SPRING_SESSION_OPTIONS) private readonly options: Pick<ResolvedSpringSessionOptions, 'serializer'>,
  ) {}

  start(): void {
    this.nodes.onOpen((subscriber) => this.#listenToSpring(subscriber));
    this.notifications.listen({
      events: ['del', 'expired', 'rename_from', 'rename_to'],
      handler: (notification) => this.#hear(notification),
      onGap: () => this.#catchUp(),
    });
    this.notifications.start();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#timer);
    await Promise.all([this.notifications.stop(), this.#looking, this.#catchingUp]);
  }

  #listenToSpring(subscriber: Redis): void {
    const { createdChannel } = this.keys;
    const pattern = `${patternOf(createdChannel)}*`;
    const subscribe = () => {
      const { signal } = this.#stopping;
      const failed = (error: unknown) => this.#failures.failed(error);
      untilSound(() => subscriber.psubscribe(pattern), signal, failed).catch((error: unknown) => {
        if (!signal.aborted) failed(error);
      });
    };
    subscriber.on('pmessage', (heardBy: string, channel: string, message: string) => {
      if (heardBy !== pattern) return;
      if (message.startsWith(OF_JAVA)) return this.#refuseJava();
      if (!message.startsWith(OF_UNKNOWN_FORM)) this.options.serializer!.see(message);
      this.#collect({ id: channel.slice(createdChannel.length), what: 'created' });
    });
    subscriber.on('ready', subscribe);
    if (subscriber.status === 'ready') subscribe();
  }

  #refuseJava(): void {
    if (!this.#hasRefusedJava) logger.error(`Sessions cannot be shared with Spring: ${NEEDS_JSON}`);
    this.#hasRefusedJava = true;
  }

  #hear({ event, key }: KeyspaceNotification): void {
    const known = this.keys.spring.read(key);
    if (event === 'rename_from') this.#renamed = known?.kind === 'session' ? known.id : undefined;
    else if (event === 'rename_to') {
      const former = this.#renamed;
      this.#renamed = undefined;
      if (known?.kind === 'session') this.#hearOfId(known.id, former);
    } else if (known?.kind === 'shadow')
      this.#collect({ id: key.slice(this.keys.spring.shadow('').length), what: 'over' });
  }

  #hearOfId(id: string, former: string | undefined): void {
    if (former === undefined) return this.#collect({ id, what: '' });
    // So no id leads back to itself, whoever renames keys.
    this.#laterIds.delete(id);
    this.#laterIds.set(former, id);
    if (this.#laterIds.size > MOST_COLLECTED) this.#laterIds.delete(this.#laterIds.keys().next().value!);
    this.#collect({ id, what: `was ${former}` });
  }

  #collect(heard: Heard): void {
    if (this.#stopping.signal.aborted) return;
    if (this.#heard.length >= MOST_COLLECTED) return this.#catchUp();
    this.#heard.push({ ...heard, tries: 1 });
    this.#schedule(COLLECTION);
  }

  #catchUp(): void {
    this.#hasMissed = true;
    this.#catchingUp ??= this.#lookAtAll().finally(() => (this.#catchingUp = undefined));
  }

  /** What is heard meanwhile does not wait for it. */
  async #lookAtAll(): Promise<void> {
    const { signal } = this.#stopping;
    while (this.#hasMissed && !signal.aborted) {
      this.#hasMissed = false;
      try {
        await this.sweeper.lookAtAll(signal);
        this.#failures.succeeded();
      } catch (error) {
        if (signal.aborted) return;
        this.#failures.failed(error);
        this.#hasMissed = true;
        await pause(RETRY, undefined, { ref: false, signal }).catch(() => undefined);
      }
    }
  }

  #schedule(wait: number): void {
    if (this.#timer || this.#stopping.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#looking = this.#looking.then(() => this.#look());
    }, wait).unref();
  }

  async #look(): Promise<void> {
    const heard = this.#heard;
    this.#heard = [];
    try {
      const unknown = await this.sweeper.lookAt(heard.map((each) => ({ ...each, laterId: this.#latest(each.id) })));
      this.#tryAgain(unknown);
      this.#failures.succeeded();
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      this.#failures.failed(error);
      this.#heard.unshift(...heard);
      if (this.#heard.length > MOST_COLLECTED) {
        this.#heard.length = MOST_COLLECTED;
        this.#catchUp();
      }
      this.#schedule(RETRY);
    }
  }

  /** Before what was heard since. After many tries, only the age of the session tells whether it is new. */
  #tryAgain(unknown: readonly Collected[]): void {
    if (unknown.length === 0) return;
    const again = unknown.flatMap(({ id, what, tries }): Collected[] => {
      if (tries < MOST_TRIES) return [{ id, what, tries: tries + 1 }];
      return what.startsWith('was ') ? [{ id, what: '', tries }] : [];
    });
    this.#heard.unshift(...again);
    this.#schedule(COLLECTION);
  }

  #latest(id: string): string {
    let latest = id;
    for (let next = this.#laterIds.get(id); next !== undefined; next = this.#laterIds.get(next)) latest = next;
    return latest;
  }
}
