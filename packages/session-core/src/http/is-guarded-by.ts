import type { Type } from '@nestjs/common';
import { GUARDS_METADATA } from '@nestjs/common/constants.js';

/** Marks the guards of the library; not what the application derives from them, which may let others in. */
export const OWN_GUARD = Symbol('OWN_GUARD');

/** Whether one of these guards, or of their classes, is the application's. */
export function hasForeignGuard(guards: readonly object[]): boolean {
  return guards.some(
    (guard) => !Reflect.hasOwnMetadata(OWN_GUARD, typeof guard === 'function' ? guard : guard.constructor),
  );
}

/** Whether a handler or a class lists this guard or a subclass of it. On a handler, that outweighs all exceptions. */
export function isGuardedBy(guard: Type, target: object): boolean {
  return guardsOf(target).some((each) => each === guard || each instanceof guard || guard.isPrototypeOf(each));
}

/** The guards that a handler or a class lists. */
export function guardsOf(target: object): readonly (object | Type)[] {
  return (Reflect.getMetadata(GUARDS_METADATA, target) as (object | Type)[] | undefined) ?? [];
}
