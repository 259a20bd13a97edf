import type { CanActivate, Type } from '@nestjs/common';
import { OptionReader } from '@nest-session/core/internal';

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

/** A request as a platform passes it to guards: of Express, of Fastify. */
export interface AdminRequest {
  /** The headers by their names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** What the guards have put there, such as `user`. */
  readonly [property: string]: unknown;
}

/** How users are known to people, such as by an e-mail address, where a principal is an id. */
export interface AdminUsers {
  /** The principals of whom a typed text may mean, such as by a search in your database. At most 50 are shown. */
  find(typed: string): readonly string[] | Promise<readonly string[]>;
  /** What the page shows beside a principal; undefined: nothing. */
  label?(principalName: string): string | undefined | Promise<string | undefined>;
}

/** Options of `SessionAdminModule.forRoot()`. */
export interface SessionAdminModuleOptions<Request extends object = AdminRequest> {
  /** Where the page is, such as `operations/sessions`. The global prefix of the application comes before it. */
  path: string;
  /**
   * The guards that decide who comes in, as `@UseGuards()` takes them. They run after the global ones. Classes are
   * injected with what the module can inject that imports this one. `'none'` lets everybody in whom the global guards
   * let in; the log warns of it.
   */
  guards: readonly (Type<CanActivate> | CanActivate)[] | 'none';
  /** What somebody may do whom the guards have let in. It gets the request of the platform. @default 'all' */
  access?(request: Request): AdminAccess | Promise<AdminAccess>;
  /** The name of the admin in security events and in the log. @default the user of the session of the request */
  by?(request: Request): string | undefined | Promise<string | undefined>;
  /** How your users are known to those who look for them. @default by their principals alone */
  users?: AdminUsers;
  /**
   * What the page shows of an attribute; undefined: nothing. What it returns must be JSON.
   * @default only names and sizes are shown
   */
  values?(name: string, value: unknown): unknown;
  /**
   * What the page shows of the data of a deadline, by the name of its kind; undefined: nothing. What it returns must be
   * JSON.
   * @default only sizes are shown
   */
  data?(name: string, data: unknown): unknown;
}

export type ResolvedAdminOptions = ReturnType<typeof resolveAdminOptions>;

export const ADMIN_OPTIONS = Symbol('ADMIN_OPTIONS');

export function resolveAdminOptions(options: object | undefined) {
  const reader = new OptionReader('SessionAdminModule', options ?? {});
  const given: { readonly path?: unknown; readonly guards?: unknown } = options ?? {};
  const path = reader.text('path', undefined, pathProblem)?.replaceAll(/^\/|\/$/g, '');
  if (given.path === undefined) reader.problem(PATH_MISSING);
  const guards = reader.value('guards', areGuards, "an array of guards, as @UseGuards() takes them, or 'none'");
  if (given.guards === undefined) reader.problem(GUARDS_MISSING);
  const functionOf = (name: string) => reader.value(name, isFunction, 'a function');
  const [access, by, values, data] = ['access', 'by', 'values', 'data'].map(functionOf);
  const users = reader.value('users', areUsers, 'an object with a function `find` and, if you like, `label`');
  reader.finish();
  return Object.freeze({
    path: path ?? '',
    guards: guards === 'none' || guards === undefined ? [] : guards,
    isOpen: guards === 'none',
    access: access ?? (() => 'all'),
    by,
    users,
    values,
    data,
  });
}

// The last segment is part of the addresses in the page.
const PATH = /^\/?[\w.~-]+(?:\/[\w.~-]+)*\/?$/;

function pathProblem(path: string): string | undefined {
  if (PATH.test(path) && !path.split('/').some((segment) => /^\.+$/.test(segment))) return undefined;
  return "must be a path without parameters, such as 'operations/sessions'";
}

function areGuards(value: unknown): value is SessionAdminModuleOptions['guards'] {
  return value === 'none' || (Array.isArray(value) && value.length > 0 && value.every(isGuard));
}

function isGuard(guard: unknown): boolean {
  // A class may define the method in its constructor: `AdminGuard` looks at the instance.
  if (typeof guard === 'function') return guard.prototype !== undefined;
  return typeof (guard as Partial<CanActivate> | null)?.canActivate === 'function';
}

function areUsers(value: unknown): value is AdminUsers {
  const { find, label } = (value ?? {}) as Partial<AdminUsers>;
  return isFunction(find) && (label === undefined || isFunction(label));
}

function isFunction(value: unknown): value is (...parameters: unknown[]) => unknown {
  return typeof value === 'function';
}

const PATH_MISSING = "Option `path` is missing: say where the page is, as in path: 'operations/sessions'.";

const GUARDS_MISSING =
  'Option `guards` is missing: without guards everybody could end the sessions of your users. Name the guards of your ' +
  "application that let administrators in, as in guards: [AdminGuard], or write guards: 'none' if global guards or " +
  'your network do so.';
