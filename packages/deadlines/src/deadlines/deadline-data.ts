import { readText } from '@nest-session/core/internal';
import { SerializationProblem } from '@nest-session/core';
import { DeadlineDataError } from './deadline.errors.js';
import type { DeadlineStore } from './deadline.store.js';

type Serializer = DeadlineStore['serializer'];

/** The text of the data of a deadline; undefined without data. @throws DeadlineDataError when no text gives it back */
export function writeData(name: string, data: unknown, serializer: Serializer): string | undefined {
  if (data === undefined) return undefined;
  try {
    return serializer.serialize(data);
  } catch (error) {
    if (!(error instanceof SerializationProblem)) throw error;
    throw new DeadlineDataError(name, error.message);
  }
}

/** The data of such a text. @throws DeadlineDataError where it cannot be read */
export function readData(name: string, text: string | undefined, serializer: Serializer): unknown {
  if (text === undefined) return undefined;
  try {
    return readText(serializer, text);
  } catch (cause) {
    throw new DeadlineDataError(name, 'cannot be read: another serializer may have written them', { cause });
  }
}
