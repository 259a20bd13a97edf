import { Inject, Injectable, Optional } from '@nestjs/common';
import { SecurityEvents } from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';

/** Where the application hears of security events: with sessions or, without them, with deadlines. */
@Injectable()
export class SecurityReports {
  readonly #events: Pick<SecurityEvents, 'report'> | undefined;

  constructor(
    @Optional() @Inject(SESSION_OPTIONS) sessions?: Pick<ResolvedSessionOptions, 'securityEvents'>,
    // Of `DeadlineModule`.
    @Optional() @Inject(SecurityEvents) deadlines?: SecurityEvents,
  ) {
    this.#events = sessions?.securityEvents ?? deadlines;
  }

  /** Returns false where no handler hears of it instead of the log. */
  report(...[kind, report]: Parameters<SecurityEvents['report']>): boolean {
    return this.#events?.report(kind, report) ?? false;
  }
}
