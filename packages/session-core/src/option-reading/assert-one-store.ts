import type { InjectionToken } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { InvalidSessionOptionsError } from '../errors/session.errors.js';

/** @throws InvalidSessionOptionsError of `module` when several modules provide the `store` of the `things` */
export function assertOneStore(modules: ModulesContainer, store: InjectionToken, module: string, things: string): void {
  const stores = [...modules.values()].filter(({ providers }) => providers.has(store));
  if (stores.length < 2) return;
  const names = stores.map(({ metatype }) => metatype.name).join(' and ');
  throw new InvalidSessionOptionsError(module, [
    `There are several stores for the ${things}: ${names}. Import one of them, once.`,
  ]);
}
