import { type AttributeSerializer, JsonAttributeSerializer } from '@nest-session/core';
import { isSerializer, OptionReader } from '@nest-session/core/internal';

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

export const DEADLINE_OPTIONS = Symbol('DEADLINE_OPTIONS');

/** @throws InvalidSessionOptionsError that names all problems at once */
export function resolveDeadlineOptions(options: DeadlineModuleOptions = {}): ResolvedDeadlineOptions {
  const reader = new OptionReader('DeadlineModule', options);
  const resolved = {
    maxDataSize: reader.integer('maxDataSize', 65_536, { atLeast: 1, atMost: 2 ** 20 }),
    maxScheduled: reader.integer('maxScheduled', 1_000_000, { atLeast: 1, atMost: Number.MAX_SAFE_INTEGER }),
  };
  const help = 'it is an option of RedisDeadlineModule.forRoot()';
  const ofRedis = ['url', 'client', 'cluster', 'sentinels', 'namespace', 'events'];
  reader.finish(Object.fromEntries(ofRedis.map((name) => [name, help])));
  return Object.freeze(resolved);
}

/** Options of `MapDeadlineModule.forRoot()`. */
export interface MapDeadlineModuleOptions {
  /** Turns the data of deadlines into text and back. @default JSON */
  serializer?: AttributeSerializer;
}

/** @throws InvalidSessionOptionsError that names all problems at once */
export function resolveMapDeadlineOptions(options: MapDeadlineModuleOptions): Required<MapDeadlineModuleOptions> {
  const reader = new OptionReader('MapDeadlineModule', options);
  const serializer = reader.value('serializer', isSerializer, 'an AttributeSerializer');
  reader.finish();
  return { serializer: serializer ?? new JsonAttributeSerializer() };
}
