import type { Type } from '@nestjs/common';
import { GUARDS_METADATA } from '@nestjs/common/constants.js';

/** Whether a handler or a class lists this guard or a subclass of it. On a handler, that outweighs all exceptions. */
export function isGuardedBy(guard: Type, target: object): boolean {
  const guards = (Reflect.getMetadata(GUARDS_METADATA, target) as (object | Type)[] | undefined) ?? [];
  return guards.some((each) => each === guard || each instanceof guard || guard.isPrototypeOf(each));
}
