import type { Type } from '@nestjs/common';
import { GUARDS_METADATA } from '@nestjs/common/constants.js';

/** The key under which the decorators mark a handler or its class. */
export const AUTHENTICATION = Symbol('AUTHENTICATION');

/** The oldest sign-in that a handler accepts: `maxAge` is in milliseconds. Null if it requires no sign-in. */
export type AuthenticationRule = { readonly maxAge: number } | null;

export const PUBLIC = null;

/** Accepts a sign-in of any age. */
export const SIGNED_IN = { maxAge: Infinity } as const;

/** Whether a handler or a class lists this guard or a subclass of it. On a handler, that outweighs `@Public()`. */
export function isGuardedBy(guard: Type, target: object): boolean {
  const guards = (Reflect.getMetadata(GUARDS_METADATA, target) as (object | Type)[] | undefined) ?? [];
  return guards.some((each) => each === guard || each instanceof guard || guard.isPrototypeOf(each));
}
