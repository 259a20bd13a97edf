import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { discoverMethods } from '../discovery/discover-methods.js';
import { decoratorsOf, type HandlerMark, type HandlerMarks } from '../discovery/handler-marks.js';
import { logger } from '../logging/session.logger.js';
import { NamedEventDispatcher } from './handler.dispatcher.js';

/** Warns of marked methods that nothing in this application calls. */
@Injectable()
export class UncalledMethodsCheck implements OnModuleInit {
  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
  ) {}

  onModuleInit(): void {
    const providers = this.discovery.getProviders().map(({ instance }): unknown => instance);
    const dispatchers = providers.filter((each) => each instanceof NamedEventDispatcher);
    const uncalled = new Map<HandlerMarks<HandlerMark>, Set<string>>();
    for (const { method, name } of discoverMethods(this.discovery, this.scanner)) {
      for (const marks of decoratorsOf(method)) {
        if (marks.uncalled === undefined || dispatchers.some((each) => each.calls(marks))) continue;
        uncalled.set(marks, (uncalled.get(marks) ?? new Set()).add(name));
      }
    }
    for (const [{ decorator, uncalled: remedy }, names] of uncalled) {
      const methods = [...names].toSorted().join(', ');
      logger.warn(`${methods} with ${decorator} will never be called: ${remedy}`);
    }
  }
}
