import { type AttributeSerializer, problemWithoutValue } from '../session/attribute.serializer.js';
import { readText } from '../session/json-attribute.serializer.js';

export type DataError = new (name: string, problem: string, options?: { readonly cause?: unknown }) => Error;

/** The text of data; undefined without data. @throws DataError when no text gives them back */
export function writeData(
  name: string,
  data: unknown,
  serializer: AttributeSerializer,
  DataError: DataError,
): string | undefined {
  if (data === undefined) return undefined;
  try {
    return serializer.serialize(data);
  } catch (cause) {
    throw new DataError(name, problemWithoutValue(cause), { cause });
  }
}

/** The data of such a text. @throws DataError where it cannot be read */
export function readData(
  name: string,
  text: string | undefined,
  serializer: AttributeSerializer,
  DataError: DataError,
): unknown {
  if (text === undefined) return undefined;
  try {
    return readText(serializer, text);
  } catch (cause) {
    throw new DataError(name, 'cannot be read: another serializer may have written them', { cause });
  }
}
