import type { AttributeSerializer } from './attribute.serializer.js';
import { PRINCIPAL_NAME_INDEX_NAME } from './session.js';
import type { AttributeChanges, IndexChanges } from './session-change.js';

const NONE: IndexChanges = new Map();

/** The changes of indexes that follow from changed attributes: each index is a function of one attribute. */
export function indexChangesOf(changes: AttributeChanges, serializer: AttributeSerializer): IndexChanges {
  const text = changes.get(PRINCIPAL_NAME_INDEX_NAME);
  if (text === undefined) return NONE;
  const name = text === null ? null : serializer.deserialize(text);
  return new Map([[PRINCIPAL_NAME_INDEX_NAME, typeof name === 'string' && name !== '' ? name : null]]);
}
