import { ConfigurableModuleBuilder } from '@nestjs/common';
import { explainInjection, OptionReader } from '@nest-session/core/internal';

/** Options of `DeadlineModule.forRoot()`. */
export interface DeadlineModuleOptions {
  /** Most bytes of the text of the data of a deadline, up to 1 MiB. @default 65536 */
  maxDataSize?: number;
  /**
   * How many deadlines of one name may wait at a time. With several partitions, each has its share: the bound can be
   * reached a little earlier. @default 1000000
   */
  maxScheduled?: number;
}

/** The options with their defaults. */
export type ResolvedDeadlineOptions = Readonly<Required<DeadlineModuleOptions>>;

/** The injection token of `ResolvedDeadlineOptions`. */
export const DEADLINE_OPTIONS = Symbol('DEADLINE_OPTIONS');

/** What a class for `forRootAsync({ useClass })` or `useExisting` must implement. */
export interface DeadlineOptionsFactory {
  /** The options of `DeadlineModule`, or a promise of them; called once, at start. */
  createDeadlineOptions(): DeadlineModuleOptions | Promise<DeadlineModuleOptions>;
}

/** @throws InvalidSessionOptionsError that names all problems at once */
export function resolveDeadlineOptions(options: DeadlineModuleOptions = {}): ResolvedDeadlineOptions {
  const reader = new OptionReader('DeadlineModule', options);
  const resolved = {
    maxDataSize: reader.integer('maxDataSize', 65_536, { atLeast: 1, atMost: 2 ** 20 }),
    maxScheduled: reader.integer('maxScheduled', 1_000_000, { atLeast: 1, atMost: Number.MAX_SAFE_INTEGER }),
  };
  reader.finish({
    url: OF_REDIS,
    client: OF_REDIS,
    cluster: OF_REDIS,
    sentinels: OF_REDIS,
    namespace: OF_REDIS,
    events: OF_REDIS,
  });
  return Object.freeze(resolved);
}

const OF_REDIS = 'it is an option of RedisDeadlineModule.forRoot()';

export const { ConfigurableModuleClass: DeadlineModuleDefinition, MODULE_OPTIONS_TOKEN: DEADLINE_MODULE_OPTIONS } =
  new ConfigurableModuleBuilder<DeadlineModuleOptions>({ moduleName: 'Deadline' })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createDeadlineOptions')
    .setExtras({}, (definition) => ({ ...explainInjection('DeadlineModule', definition), global: true }))
    .build();
