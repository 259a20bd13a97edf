import { ConfigurableModuleBuilder } from '@nestjs/common';
import { explainInjection, OptionReader } from '@nest-session/core/internal';
import type { RedisEventsModuleOptions } from '@nest-session/redis-events';
import { type EventDeliveryOptions, OF_URL, readStore, type RedisAddress } from '@nest-session/redis-events/internal';
import { type EncryptionOptions, readEncryption } from '@nest-session/redis/internal';
import { DeadlineEncryption } from './deadline-encryption.js';

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
