import type { NestInterceptor, Type } from '@nestjs/common';
import { INTERCEPTORS_METADATA } from '@nestjs/common/constants.js';

/** A method of a controller, a resolver or a gateway. */
export interface Handler {
  /** The class that the application has. */
  readonly controller: Type;
  /** The method, which may belong to a class that it extends. */
  readonly method: object;
}

/** Puts an interceptor around those that a handler has by decorators. Those of a class run around those of a method. */
export function putFirst(interceptor: NestInterceptor, { controller, method }: Handler): void {
  const target = interceptorsOf(controller).length > 0 ? controller : method;
  const others = interceptorsOf(target);
  if (others.includes(interceptor)) return;
  // A new list: that of a class may belong to the class it extends.
  Reflect.defineMetadata(INTERCEPTORS_METADATA, [interceptor, ...others], target);
}

function interceptorsOf(target: object): (NestInterceptor | object)[] {
  return (Reflect.getMetadata(INTERCEPTORS_METADATA, target) as object[] | undefined) ?? [];
}
