import type { ExceptionFilter, NestInterceptor, Type } from '@nestjs/common';
import { EXCEPTION_FILTERS_METADATA, INTERCEPTORS_METADATA } from '@nestjs/common/constants.js';

/** A method of a controller, a resolver or a gateway. */
export interface Handler {
  /** The class that the application has. */
  readonly controller: Type;
  /** The method, which may belong to a class that it extends. */
  readonly method: object;
}

/** Puts an interceptor around those of the decorators of a handler. Nest runs a class's around a method's. */
export function putFirst(interceptor: NestInterceptor, { controller, method }: Handler): void {
  const target = enhancersOf(controller, INTERCEPTORS_METADATA).length > 0 ? controller : method;
  putFirstAmong(interceptor, target, INTERCEPTORS_METADATA);
}

/** Puts an interceptor behind all others of a method. */
export function putLast(interceptor: NestInterceptor, method: object): void {
  const others = enhancersOf(method, INTERCEPTORS_METADATA);
  if (!others.includes(interceptor)) Reflect.defineMetadata(INTERCEPTORS_METADATA, [...others, interceptor], method);
}

/**
 * Puts an exception filter behind those that the handlers of a class have by decorators: the first of a class is last.
 */
export function putFilterLast(filter: ExceptionFilter, controller: Type): void {
  putFirstAmong(filter, controller, EXCEPTION_FILTERS_METADATA);
}

/** Puts a guard, an interceptor or a filter before those that a class or a method has under a key. */
export function putFirstAmong(enhancer: object, target: object, key: string): void {
  const others = enhancersOf(target, key);
  if (others.includes(enhancer)) return;
  // A new list: that of a class may belong to the class it extends.
  Reflect.defineMetadata(key, [enhancer, ...others], target);
}

function enhancersOf(target: object, key: string): readonly object[] {
  return (Reflect.getMetadata(key, target) as object[] | undefined) ?? [];
}
