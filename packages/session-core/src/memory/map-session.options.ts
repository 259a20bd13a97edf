import { OptionReader } from '../option-reading/option.reader.js';
import type { AttributeSerializer } from '../session/attribute.serializer.js';
import type { Clock } from './map-session.store.js';

/** Options of `MapSessionModule.forRoot()`. */
export interface MapSessionModuleOptions {
  /** Turns attributes into text and back. @default JSON */
  serializer?: AttributeSerializer;
  /** Tells the time by which sessions expire, for tests that move it. @default Date */
  clock?: Clock;
}

export interface ResolvedMapSessionOptions {
  readonly serializer: AttributeSerializer | undefined;
  readonly clock: Clock | undefined;
}

/** @throws InvalidSessionOptionsError that names all problems at once */
export function resolveMapSessionOptions(options: MapSessionModuleOptions | undefined): ResolvedMapSessionOptions {
  const reader = new OptionReader('MapSessionModule', options);
  const serializer = reader.value('serializer', isSerializer, 'an AttributeSerializer');
  const clock = reader.value('clock', isClock, 'an object with a method now()');
  reader.finish();
  return Object.freeze({ serializer, clock });
}

function isSerializer(value: unknown): value is AttributeSerializer {
  return hasMethod(value, 'serialize') && hasMethod(value, 'deserialize');
}

function isClock(value: unknown): value is Clock {
  return hasMethod(value, 'now');
}

function hasMethod(value: unknown, name: string): boolean {
  return value instanceof Object && typeof Reflect.get(value, name) === 'function';
}
