import type { Type } from '@nestjs/common';
import { GUARDS_METADATA } from '@nestjs/common/constants.js';

/** The key under which the decorators mark a handler or its class. */
export const AUTHENTICATION = Symbol('AUTHENTICATION');

/** What a handler requires of its session; null: nothing. `maxAge`: milliseconds since the sign-in at most. */
export type AuthenticationRule = { readonly maxAge: number } | null;

export const PUBLIC = null;

/** However long ago the sign-in is. */
export const SIGNED_IN = { maxAge: Infinity } as const;

/** Whether a handler or a class has a guard by name, or one that extends it. On a handler, that outweighs `@Public()`. */
export function isGuardedBy(guard: Type, target: object): boolean {
  const guards = (Reflect.getMetadata(GUARDS_METADATA, target) as (object | Type)[] | undefined) ?? [];
  return guards.some((each) => each === guard || each instanceof guard || guard.isPrototypeOf(each));
}
