import { OptionReader } from '../option-reading/option.reader.js';
import { type AttributeSerializer, isSerializer } from '../session/attribute.serializer.js';

/** Options of `MapSessionModule.forRoot()`. */
export interface MapSessionModuleOptions {
  /** Turns attributes into text and back. @default JSON */
  serializer?: AttributeSerializer;
}

/** @throws InvalidSessionOptionsError that names all problems at once */
export function resolveMapSessionOptions(options: MapSessionModuleOptions | undefined) {
  const reader = new OptionReader('MapSessionModule', options);
  const serializer = reader.value('serializer', isSerializer, 'an AttributeSerializer');
  reader.finish();
  return Object.freeze({ serializer });
}
