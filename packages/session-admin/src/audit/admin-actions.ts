import { Inject, Injectable } from '@nestjs/common';
import { OneLineLogger, requestOf, requestSessionOf, type SecurityEvents } from '@nest-session/core/internal';
import { ADMIN_OPTIONS, type ResolvedAdminOptions } from '../configuration/session-admin.options.js';

export const logger = new OneLineLogger('SessionAdmin');

/** Where the application hears of security events, with sessions or with deadlines; undefined: nowhere. */
export type SecurityReports = Pick<SecurityEvents, 'report'> | undefined;
export const SECURITY_REPORTS = Symbol('SECURITY_REPORTS');

export interface AdminAction {
  readonly action:
    | 'end-session'
    | 'end-sessions'
    | 'replay'
    | 'replay-all'
    | 'discard'
    | 'discard-all'
    | 'remove-group'
    | 'cancel-deadline';
  /** The session, by the id that its store knows. */
  readonly sessionId?: string | undefined;
  readonly shownId?: string | undefined;
  readonly principalName?: string | undefined;
  /** What it is done to, if that is no session and no user. */
  readonly target?: string | undefined;
}

/** The replies of an action that was done; a number of things may be none. */
const DONE: readonly unknown[] = [true, 'cancelled', 'removed', 'replayed'];

@Injectable()
export class AdminActions {
  constructor(
    @Inject(ADMIN_OPTIONS) private readonly options: ResolvedAdminOptions,
    @Inject(SECURITY_REPORTS) private readonly reports: SecurityReports,
  ) {}

  /** An action that fails is told of as well, with the reason `failed`: it may have had an effect. */
  async run<Result extends string | number | boolean>(
    request: object,
    action: AdminAction,
    act: () => Promise<Result>,
  ): Promise<Result> {
    // Before the action, which may end the session of the admin.
    const by = await this.#nameOf(request);
    try {
      const result = await act();
      if (typeof result === 'number' ? result > 0 : DONE.includes(result)) this.#tell(request, { ...action, by });
      return result;
    } catch (error) {
      this.#tell(request, { ...action, by, reason: 'failed' });
      throw error;
    }
  }

  async #nameOf(request: object): Promise<string | undefined> {
    const name: unknown = this.options.by
      ? await this.options.by(request)
      : requestSessionOf(requestOf(request))?.existing?.principalName;
    return typeof name === 'string' ? name : undefined;
  }

  #tell(request: object, told: AdminAction & { readonly by: string | undefined; readonly reason?: string }): void {
    const { shownId, ...facts } = told;
    if (this.reports?.report('admin-action', { request: requestOf(request), ...facts })) return;
    const { action, principalName: user, target, by, reason } = facts;
    logger.log(`Admin action: ${JSON.stringify({ action, session: shownId, user, target, by, reason })}`);
  }
}
