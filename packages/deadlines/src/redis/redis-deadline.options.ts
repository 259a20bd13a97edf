import { ConfigurableModuleBuilder } from '@nestjs/common';
import { explainInjection, OptionReader, shownError } from '@nest-session/core/internal';
import type { RedisEventsModuleOptions } from '@nest-session/redis-events';
import { type EventDeliveryOptions, OF_URL, readStore, type RedisAddress } from '@nest-session/redis-events/internal';
import {
  DataKey,
  decrypt,
  encrypt,
  type EncryptionOptions,
  type EncryptionRules,
  readEncryption,
  writesPlain,
} from '@nest-session/redis/internal';
import type { DeadlineEvent } from '../deadlines/deadline-event.js';
import { DeadlineDataError } from '../deadlines/deadline.errors.js';

/** Scripts by the connection of a call, and those of background work on the one that it has. */
export const REQUEST_DEADLINE_SCRIPTS = Symbol('REQUEST_DEADLINE_SCRIPTS');
export const BACKGROUND_DEADLINE_SCRIPTS = Symbol('BACKGROUND_DEADLINE_SCRIPTS');

/** Options of `RedisDeadlineModule.forRoot()`. `partitions` and the rest are those of `RedisEventsModule`. */
export interface RedisDeadlineModuleOptions extends Omit<RedisEventsModuleOptions, 'namespace' | 'events'> {
  /** Prefix of every key, which no sessions have. Without `{ } * [ ] ? \`. @default 'nest:deadlines' */
  namespace?: string;
  /**
   * How deadlines that have come reach the handlers of this process: as the events of sessions do. The default of
   * `retention` is `'7d'`. While `maxLength` events wait for their groups, later deadlines go on waiting, and nothing
   * is lost.
   */
  events?: EventDeliveryOptions;
  /** Encrypts the data in Redis with AES-256-GCM. Keys of deadlines are not encrypted. @default none */
  encryption?: EncryptionOptions;
}

export const MODULE = 'RedisDeadlineModule';

/** With what deadlines do not let choose. Times are milliseconds. */
export type ResolvedRedisDeadlineOptions = ReturnType<typeof resolveRedisDeadlineOptions>;

export const REDIS_DEADLINE_OPTIONS = Symbol('REDIS_DEADLINE_OPTIONS');

// Milliseconds. Short, because what is handled counts among the `maxLength` events until it is trimmed.
const GRACE = 60_000;

/** `shared`: the address of `RedisSessionModule`. @throws InvalidSessionOptionsError that names all problems at once */
export function resolveRedisDeadlineOptions(options: RedisDeadlineModuleOptions = {}, shared?: RedisAddress) {
  const reader = new OptionReader(MODULE, options);
  const defaults = { what: 'deadlines', namespace: 'nest:deadlines', grace: GRACE, shownGrace: '1m' } as const;
  const store = readStore(reader, options, defaults, shared);
  const scope = { kind: 'deadline', namespace: store.namespace } as const;
  const { rules } = readEncryption(reader.section('encryption'), options.encryption !== undefined, scope);
  reader.finish({ ...OF_URL, maxDataSize: OF_DEADLINES, maxScheduled: OF_DEADLINES });
  return Object.freeze({ ...store, encryption: new DeadlineEncryption(rules) });
}

const OF_DEADLINES = 'it is an option of DeadlineModule.forRoot()';

/** Implement it in a class that you pass to `forRootAsync()` as `useClass` or `useExisting`. */
export interface RedisDeadlineOptionsFactory {
  /** Returns the options, or a promise of them. Called once, at start. */
  createRedisDeadlineOptions(): RedisDeadlineModuleOptions | Promise<RedisDeadlineModuleOptions>;
}

export const {
  ConfigurableModuleClass: RedisDeadlineModuleDefinition,
  MODULE_OPTIONS_TOKEN: REDIS_DEADLINE_MODULE_OPTIONS,
} = new ConfigurableModuleBuilder<RedisDeadlineModuleOptions>({ moduleName: 'RedisDeadline' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createRedisDeadlineOptions')
  .setExtras({}, (definition) => ({ ...explainInjection(MODULE, definition), global: true }))
  .build();

type DeadlineIdentity = Pick<DeadlineEvent, 'id' | 'name' | 'key'>;

interface StoredText {
  readonly text: string;
  /** The wrapped data key with which the text is encrypted; undefined: it is not. */
  readonly dataKey: string | undefined;
}

/** Encrypts the data of deadlines, each under a data key of its own. Without keys it encrypts nothing. */
export class DeadlineEncryption {
  constructor(private readonly rules: EncryptionRules) {}

  encrypted(text: string, deadline: DeadlineIdentity): StoredText {
    const { ring, plainValues } = this.rules;
    if (ring.isEmpty || writesPlain(plainValues)) return { text, dataKey: undefined };
    const dataKey = DataKey.draw();
    return { text: encrypt(dataKey.key, associated(deadline), text), dataKey: ring.wrap(dataKey, deadline.id) };
  }

  /** @throws DeadlineDataError when the text was changed, or its key is missing, or plain data are refused */
  decrypted(stored: StoredText, deadline: DeadlineIdentity): string {
    try {
      return this.#decrypted(stored, deadline);
    } catch (cause) {
      throw new DeadlineDataError(deadline.name, `cannot be decrypted: ${shownError(cause)}`, { cause });
    }
  }

  #decrypted({ text, dataKey }: StoredText, deadline: DeadlineIdentity): string {
    const { ring, plainValues } = this.rules;
    if (dataKey === undefined) {
      if (plainValues === 'refuse') throw new Error("they are plain, and option `encryption.plainValues` is 'refuse'");
      return text;
    }
    const data = decrypt(ring.unwrap(dataKey, deadline.id).dataKey.key, associated(deadline), text);
    if (!data) throw new Error('they were changed in Redis, or belong to another deadline');
    return data.toString('utf8');
  }
}

/** What is encrypted for one deadline cannot be read as that of another one. */
function associated({ id, name, key }: DeadlineIdentity): string {
  return `deadline\n${id}\n${name}\n${key}`;
}
