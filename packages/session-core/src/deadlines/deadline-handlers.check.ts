import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, MetadataScanner, ModulesContainer } from '@nestjs/core';
import { discoverMethods } from '../discovery/discover-methods.js';
import { logger } from '../logging/session.logger.js';
import { DeadlineHandlerModule } from './deadline-handler.module.js';
import { DEADLINE_MARKS } from './on-deadline.decorator.js';

/**
 * Warns of `@OnDeadline` methods in an application without deadlines, where nothing calls them. The module of sessions
 * has it, because no other code of this package runs there.
 */
@Injectable()
export class DeadlineHandlersCheck implements OnModuleInit {
  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
  ) {}

  /** Called by Nest. */
  onModuleInit(): void {
    if ([...this.modules.values()].some(({ metatype }) => metatype === DeadlineHandlerModule)) return;
    const names = new Set<string>();
    for (const each of discoverMethods(this.discovery, this.scanner))
      if (DEADLINE_MARKS.of(each.method).length > 0) names.add(each.nameOf());
    if (names.size > 0) logger.warn(`${[...names].toSorted().join(', ')} ${NEVER_CALLED}`);
  }
}

const NEVER_CALLED =
  'with @OnDeadline will never be called: this application has no deadlines. Add DeadlineModule.forRoot() and ' +
  'RedisDeadlineModule.forRoot() of @nest-session/redis/deadlines to the imports of the root module, or ' +
  'MapDeadlineModule for a single process and for tests.';
