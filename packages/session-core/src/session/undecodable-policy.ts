/**
 * What happens to a session with a value that its serializer cannot decode:
 * - `'throw'`: reading the attribute throws a `SessionAttributeError`;
 * - `'drop-attribute'`: reading the attribute gives undefined;
 * - `'drop-session'`: the session is ended, as deleted, when it is loaded.
 */
export type UndecodablePolicy = 'throw' | 'drop-attribute' | 'drop-session';

export const UNDECODABLE_POLICIES: readonly UndecodablePolicy[] = ['throw', 'drop-attribute', 'drop-session'];
