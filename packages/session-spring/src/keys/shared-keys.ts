import type { SessionKeys } from '@nest-session/redis/internal';
import { SpringKeys } from './spring-keys.js';

/** The names of the keys of sessions that are shared with Spring. */
export class SharedKeys {
  readonly spring: SpringKeys;

  constructor(
    namespace: string,
    /** Of the namespace beside. Its `ends` has all sessions that are known. */
    readonly own: SessionKeys,
    /** The number of the database. */
    private readonly database: number,
  ) {
    this.spring = new SpringKeys(namespace);
  }

  /** STRING: when somebody signed in to a session here, and who, after a space. */
  signedIn(id: string): string {
    return `${this.own.prefix}sessions:signed-in:${id}`;
  }

  /** STRING, empty: an instance looks at all sessions that Spring has. */
  get scanning(): string {
    return `${this.own.prefix}scanning`;
  }

  /** The channel of Spring's created events, before the id. */
  get createdChannel(): string {
    return `${this.spring.prefix}event:${this.database}:created:`;
  }
}
