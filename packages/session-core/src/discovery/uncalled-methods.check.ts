import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, MetadataScanner, ModulesContainer } from '@nestjs/core';
import { logger } from '../logging/session.logger.js';
import { discoverMethods } from './discover-methods.js';

const CALLER = Symbol('@nest-session/core:caller');

/** Who calls the methods that a decorator marks. */
export interface MethodCaller {
  /** The name of the class of the module, one of the application's when something calls them. */
  readonly module: string;
  /** Said of the methods where that module is missing: a sentence without its subject. */
  readonly missing: string;
}

/** For a decorator of a package whose module may be missing: nothing of that package runs then. */
export function markCaller(method: object, caller: MethodCaller): void {
  Reflect.defineMetadata(CALLER, caller, method);
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
    const uncalled = new Map<string, Set<string>>();
    for (const each of discoverMethods(this.discovery, this.scanner)) {
      const caller = callerOf(each.method);
      if (!caller || modules.has(caller.module)) continue;
      uncalled.set(caller.missing, (uncalled.get(caller.missing) ?? new Set()).add(each.nameOf()));
    }
    for (const [missing, names] of uncalled) logger.warn(`${[...names].toSorted().join(', ')} ${missing}`);
  }
}

function callerOf(method: unknown): MethodCaller | undefined {
  if (typeof method !== 'function') return undefined;
  return Reflect.getOwnMetadata(CALLER, method) as MethodCaller | undefined;
}
