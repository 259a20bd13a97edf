import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, MetadataScanner, ModulesContainer } from '@nestjs/core';
import { logger } from '../logging/session.logger.js';
import { discoverMethods } from './discover-methods.js';

const CALLER = Symbol('@nest-session/core:caller');

/** Who calls the methods that a decorator marks. */
export interface MethodCaller {
  /** The name of the class of the module, one of the application's when something calls them. */
  readonly module: string;
  /** What to do where that module is missing. */
  readonly missing: string;
}

interface MarkedCaller extends MethodCaller {
  /** The name of the decorator, such as '@OnDeadline'. */
  readonly decorator: string;
}

/** For a decorator of a package whose module may be missing: nothing of that package runs then. */
export function markCaller(method: object, decorator: string, caller: MethodCaller): void {
  Reflect.defineMetadata(CALLER, { decorator, ...caller }, method);
}

/** Warns of marked methods that nothing in this application calls. */
@Injectable()
export class UncalledMethodsCheck implements OnModuleInit {
  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
  ) {}

  /** Called by Nest. */
  onModuleInit(): void {
    const modules = new Set([...this.modules.values()].map(({ metatype }) => metatype?.name));
    const uncalled = new Map<string, { readonly caller: MarkedCaller; readonly names: Set<string> }>();
    for (const each of discoverMethods(this.discovery, this.scanner)) {
      const caller = callerOf(each.method);
      if (!caller || modules.has(caller.module)) continue;
      const { names } = uncalled.get(caller.decorator) ?? { names: new Set<string>() };
      uncalled.set(caller.decorator, { caller, names: names.add(each.nameOf()) });
    }
    for (const { caller, names } of uncalled.values()) {
      const methods = [...names].toSorted().join(', ');
      logger.warn(`${methods} with ${caller.decorator} will never be called: ${caller.missing}`);
    }
  }
}

function callerOf(method: unknown): MarkedCaller | undefined {
  if (typeof method !== 'function') return undefined;
  return Reflect.getOwnMetadata(CALLER, method) as MarkedCaller | undefined;
}
