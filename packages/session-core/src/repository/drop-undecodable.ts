import { SessionStoreError } from '../errors/session.errors.js';
import { logger } from '../logging/session.logger.js';
import type { SessionRecord, StoredText } from '../session/session-record.js';
import type { SessionWriter } from '../session/session-writer.js';

/** The records whose values can all be decoded. The sessions of the others are ended, with one log line for each. */
export async function dropUndecodable(
  records: readonly SessionRecord[],
  writer: SessionWriter,
): Promise<readonly SessionRecord[]> {
  // Listed, because a store may hand out its attributes as an iterator, which can be read once.
  const listed = records.map((record) => ({ ...record, attributes: [...record.attributes] }));
  const undecodable = listed.map(({ attributes }) => attributes.find(([, text]) => !canDecode(text, writer)));
  await Promise.all(
    undecodable.map(async (attribute, index) => attribute && drop(listed[index]!.id, attribute[0], writer)),
  );
  return listed.filter((_, index) => undecodable[index] === undefined);
}

async function drop(id: string, name: string, writer: SessionWriter): Promise<void> {
  const { outcome } = await writer.write({ kind: 'delete', id });
  // `gone`: another request ended it first, and logged it.
  if (outcome === 'gone') return;
  logger.warn(
    `Session ${writer.shown(id)} was ended: its attribute ${JSON.stringify(name)} cannot be decoded. If this ` +
      'continues, configure the serializer that wrote it',
  );
}

function canDecode(text: StoredText, { serializer }: SessionWriter): boolean {
  try {
    serializer.deserialize(typeof text === 'object' ? text.read() : text);
    return true;
  } catch (error) {
    // What the store cannot read now may be readable again: the session must not end because of it.
    return error instanceof SessionStoreError;
  }
}
