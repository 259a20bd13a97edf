/** What an admin may be allowed to do, beside looking. */
const ADMIN_RIGHTS = ['end', 'replay', 'discard', 'removeGroup', 'cancelDeadline'] as const;

/** Something that an admin may be allowed to do. */
export type AdminRight = (typeof ADMIN_RIGHTS)[number];

/** What one admin may do. Nothing else is allowed. */
export interface AdminRights {
  /** End sessions. */
  readonly end?: boolean;
  /** Replay dead letters. */
  readonly replay?: boolean;
  /** Discard dead letters. */
  readonly discard?: boolean;
  /** Remove groups. */
  readonly removeGroup?: boolean;
  /** Cancel deadlines. */
  readonly cancelDeadline?: boolean;
}

/** What the option `access` returns: nothing at all, only to look, everything, or to look and some actions. */
export type AdminAccess = 'none' | 'read' | 'all' | AdminRights;

/** All rights, each of them granted or not; undefined: not even to look. */
export type ResolvedRights = Readonly<Record<AdminRight, boolean>> | undefined;

/** Every right that is not granted by `true` is refused. @throws TypeError for what `access` must not return */
export function resolveRights(access: unknown): ResolvedRights {
  if (access === 'none') return undefined;
  if (access === 'read') return rightsBy(() => false);
  if (access === 'all') return rightsBy(() => true);
  if (typeof access !== 'object' || access === null) throw new TypeError(WRONG_ACCESS);
  return rightsBy((right) => (access as AdminRights)[right] === true);
}

function rightsBy(isGranted: (right: AdminRight) => boolean): Readonly<Record<AdminRight, boolean>> {
  return Object.fromEntries(ADMIN_RIGHTS.map((right) => [right, isGranted(right)])) as Record<AdminRight, boolean>;
}

const WRONG_ACCESS =
  "Option `access` of SessionAdminModule must return 'none', 'read', 'all' or an object such as { end: true }, or a promise of it";
