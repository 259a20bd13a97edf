import { SessionStoreError } from '../errors/session.errors.js';
import { logger } from '../logging/session.logger.js';
import type { SessionRecord, StoredText } from '../session/session-record.js';
import type { SessionWriter } from '../session/session-writer.js';

/** Returns the records whose values can all be decoded. Ends the other sessions, and logs one line for each. */
export async function dropUndecodable(
  records: readonly SessionRecord[],
  writer: SessionWriter,
): Promise<readonly SessionRecord[]> {
  // Copy the attributes: a store may return them as an iterator, which can be read only once.
  const listed = records.map((record) => ({ ...record, attributes: [...record.attributes] }));
  const undecodable = listed.map(({ attributes }) => attributes.find(([, text]) => !canDecode(text, writer)));
  await Promise.all(
    undecodable.map(async (attribute, index) => attribute && drop(listed[index]!.id, attribute[0], writer)),
  );
  return listed.filter((_, index) => undecodable[index] === undefined);
}

async function drop(id: string, name: string, writer: SessionWriter): Promise<void> {
  const { outcome } = await writer.write({ kind: 'delete', id });
  // With `gone`, another request ended the session first and logged it.
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
    // The store may be able to read the value later, so the session must not end now.
    return error instanceof SessionStoreError;
  }
}
