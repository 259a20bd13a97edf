export interface NamespaceOwner {
  /** `shared-sessions`: what is kept beside sessions of Spring Session. */
  readonly holds: 'sessions' | 'deadlines' | 'events' | 'shared-sessions';
  readonly module: string;
  /** The option `sessionIds`, which is recorded for whoever looks into the namespace. */
  readonly ids?: 'hashed' | 'plain';
  /** Whether it has the option `maxSessions`; undefined: it signs nobody in. */
  readonly limits?: boolean;
}

export function shownContent(holds: string): string {
  return holds.replace('-', ' ');
}

export const OF_SESSIONS: NamespaceOwner = { holds: 'sessions', module: 'RedisSessionModule' };

// A namespace with these could match keys of others.
const FORBIDDEN = /[{}*[\]?\\]/;
// In these names the part after the word is free. So the keys of `app:index` would be indexes of the namespace `app`.
const OF_KEYS = /:(?:index|revoked|due)(?::|$)/;
const LIKE_KEYS =
  'must not contain :index, :revoked or :due: its keys would pass for those of the namespace before that';

/** The problem of a namespace, as the end of the sentence "Option `namespace` ..."; undefined if it is valid. */
export function namespaceProblem(namespace: string): string | undefined {
  return FORBIDDEN.test(namespace) ? 'must not contain { } * [ ] ? or \\' : namespaceBesideProblem(namespace);
}

/** The same of a namespace beside that of another library. */
export function namespaceBesideProblem(namespace: string): string | undefined {
  return emptyNamespaceProblem(namespace) ?? (OF_KEYS.test(namespace) ? LIKE_KEYS : undefined);
}

/** The same where we keep no key. */
export function emptyNamespaceProblem(namespace: string): string | undefined {
  return namespace.trim() === '' ? 'must not be empty' : undefined;
}
