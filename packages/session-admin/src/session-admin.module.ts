import {
  Controller,
  type DynamicModule,
  Inject,
  Module,
  Optional,
  type Type,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { InvalidSessionOptionsError, SessionRepository, SkipCsrf } from '@nest-session/core';
import { SecurityEvents } from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import { DeadlineHandlerModule, DeadlineStore } from '@nest-session/deadlines/internal';
import { AdminGuard } from './access/admin.guards.js';
import { AdminActions, SECURITY_REPORTS, type SecurityReports } from './audit/admin-actions.js';
import {
  ADMIN_OPTIONS,
  type AdminRequest,
  resolveAdminOptions,
  type SessionAdminModuleOptions,
} from './configuration/session-admin.options.js';
import { DeadlinesController, WaitingDeadlines } from './deadlines/deadlines.controller.js';
import { DeadLettersController, EventSources, GroupsController } from './groups/groups.controllers.js';
import { OverviewController } from './overview/overview.controller.js';
import { PageController } from './page/page.controller.js';
import { SessionsController, UserSessions } from './sessions/sessions.controller.js';

const CONTROLLERS: readonly Type[] = [
  PageController,
  OverviewController,
  SessionsController,
  GroupsController,
  DeadLettersController,
  DeadlinesController,
];

/**
 * A page, and JSON for programs, that shows the sessions, event groups and deadlines of the application to its
 * administrators, who can end, replay and cancel. Import it beside `SessionModule`, `DeadlineModule` or both.
 */
@Module({
  imports: [DeadlineHandlerModule],
  providers: [
    // `forRoot()` replaces it.
    { provide: ADMIN_OPTIONS, useFactory: refuseBareClass },
    {
      provide: SECURITY_REPORTS,
      inject: [
        { token: SESSION_OPTIONS, optional: true },
        { token: SecurityEvents, optional: true },
      ],
      useFactory: (sessions?: ResolvedSessionOptions, deadlines?: SecurityEvents): SecurityReports =>
        sessions?.securityEvents ?? deadlines,
    },
    AdminActions,
    UserSessions,
    EventSources,
    WaitingDeadlines,
  ],
})
export class SessionAdminModule {
  /** @internal Import it with `forRoot()`. */
  constructor(
    @Inject(ADMIN_OPTIONS) _options: unknown,
    // Optional, so that our own error names the missing modules.
    @Optional() @Inject(SessionRepository) sessions?: SessionRepository,
    @Optional() @Inject(DeadlineStore) deadlines?: DeadlineStore,
  ) {
    if (!sessions && !deadlines) throw new InvalidSessionOptionsError('SessionAdminModule', [NO_STORE]);
  }

  /** For the imports of a module that can inject the guards. Wrong options fail the start with an error of all. */
  static forRoot<Request extends object = AdminRequest>(options: SessionAdminModuleOptions<Request>): DynamicModule {
    try {
      const resolved = resolveAdminOptions(options);
      return {
        module: SessionAdminModule,
        providers: [{ provide: ADMIN_OPTIONS, useValue: resolved }],
        controllers: CONTROLLERS.map((each) => controllerAt(resolved.path, each)),
      };
    } catch (error) {
      return {
        module: SessionAdminModule,
        providers: [{ provide: ADMIN_OPTIONS, useFactory: () => Promise.reject(error as Error) }],
      };
    }
  }
}

const NO_STORE =
  'There are no sessions to show, and no deadlines: add SessionModule.forRoot() and RedisSessionModule.forRoot(), or ' +
  'the module of another store, to the imports of the root module; for deadlines, DeadlineModule and ' +
  'RedisDeadlineModule.forRoot().';

/** A class of its own for each path: applications of one process share the classes that they import. */
function controllerAt(path: string, base: Type): Type {
  class Located extends base {}
  Object.defineProperty(Located, 'name', { value: base.name });
  UseGuards(AdminGuard)(Located);
  // `AdminGuard` refuses what the application's `CsrfGuard` would refuse.
  SkipCsrf()(Located);
  Controller({ path, version: VERSION_NEUTRAL })(Located);
  return Located;
}

function refuseBareClass(): never {
  throw new InvalidSessionOptionsError('SessionAdminModule', [BARE_CLASS]);
}

const BARE_CLASS =
  'It is imported as a class: write SessionAdminModule.forRoot({ path, guards }) in the imports of a module.';
