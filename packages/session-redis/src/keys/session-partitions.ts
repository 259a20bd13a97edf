import { type NamespaceOwner, OF_SESSIONS, Partitions } from '@nest-session/redis-events/internal';
import { SessionKeys } from './session-keys.js';

/** The partitions of a namespace of sessions. `Partitions.of()` says which one an id belongs to. */
export class SessionPartitions extends Partitions<SessionKeys> {
  /** A pattern of Redis that matches the shadow keys of all partitions. */
  readonly shadows: string;
  /** Prefixes of canaries. They look like shadow keys but belong to no session, and test whether key events arrive. */
  readonly canaries: readonly string[];

  constructor(namespace: string, count = 1, owner: Partial<NamespaceOwner> = {}) {
    super(namespace, count, SessionKeys, { ...OF_SESSIONS, ...owner });
    this.shadows = this.any.shadow('*');
    this.canaries = this.all.map((keys) => keys.shadow('canary:'));
  }

  idOfShadow(key: string): string | undefined {
    const id = key.slice(key.lastIndexOf(':') + 1);
    return this.of(id).shadow(id) === key ? id : undefined;
  }
}
