import type { Type } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import { Session } from '@nest-session/core';

/** The parameters of a method, by type and index, such as `7:0`. */
type Parameters = Readonly<Record<string, { readonly index: number }>>;

/** Makes Nest's own `@Session()`, which gives null outside of HTTP, behave like the `@Session()` of the core. */
export function fillSessionParameters(controller: Type, method: string): void {
  const parameters = Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, method) as Parameters | undefined;
  const all = Object.entries(parameters ?? {});
  const sessions = all.filter(([key]) => key.startsWith(`${RouteParamtypes.SESSION}:`));
  if (sessions.length === 0) return;
  // Use a new object, because the metadata of a class may belong to the class that it extends.
  const others = all.filter((each) => !sessions.includes(each));
  Reflect.defineMetadata(ROUTE_ARGS_METADATA, Object.fromEntries(others), controller, method);
  for (const [, { index }] of sessions) Session()(controller.prototype as object, method, index);
}
