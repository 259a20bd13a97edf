import { isSerializer, OptionReader } from '@nest-session/core/internal';
import { type AttributeSerializer, JsonAttributeSerializer } from '@nest-session/core';

/** Options of `MapDeadlineModule.forRoot()`. */
export interface MapDeadlineModuleOptions {
  /** Turns the data of deadlines into text and back. @default JSON */
  serializer?: AttributeSerializer;
}

/** @throws InvalidSessionOptionsError that names all problems at once */
export function resolveMapDeadlineOptions(options: MapDeadlineModuleOptions): {
  readonly serializer: AttributeSerializer;
} {
  const reader = new OptionReader('MapDeadlineModule', options);
  const serializer = reader.value('serializer', isSerializer, 'an AttributeSerializer');
  reader.finish();
  return { serializer: serializer ?? new JsonAttributeSerializer() };
}
