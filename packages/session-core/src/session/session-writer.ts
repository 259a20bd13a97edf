import type { AttributeSerializer } from './attribute.serializer.js';
import type { SessionChange, WriteReply } from './session-change.js';
import type { SessionKey } from './session-token.js';
import type { UndecodablePolicy } from './undecodable-policy.js';

/** What a session needs of the repository that it belongs to. */
export interface SessionWriter {
  readonly serializer: AttributeSerializer;
  readonly undecodable: UndecodablePolicy;
  /** One atomic step of the store. @throws SessionStoreError when the store failed or did not reply in time */
  write(change: SessionChange): Promise<WriteReply>;
  /** A fresh key. `replaced`: the id of the session that is to have it. */
  drawKey(replaced?: string): SessionKey;
  /** How an id is written into logs: an id that opens the session is not. */
  shown(id: string): string;
}
