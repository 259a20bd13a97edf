import { Inject, Injectable } from '@nestjs/common';
import { SessionStateError } from '../errors/session.errors.js';
import { NOT_REMEMBERED } from '../session/session-response.js';
import { REMEMBER_ME_ATTRIBUTE } from '../session/attribute-names.js';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import type { Session } from '../session/session.js';
import { TrackedSession } from '../session/tracked-session.js';
import { SessionIdResolver } from '../resolvers/session-id.resolver.js';

/**
 * Keeps users signed in after they close their browser, for as long as the option `cookie.rememberMe` says. At login,
 * `session.signIn(name, { remember })` decides it; this is for a user who changes their mind later.
 */
@Injectable()
export class RememberMe {
  /** @internal Inject it. */
  constructor(
    @Inject(SessionIdResolver) private readonly resolver: SessionIdResolver,
    @Inject(SESSION_OPTIONS) private readonly options: Pick<ResolvedSessionOptions, 'timeout'>,
  ) {}

  /**
   * Makes the cookie outlive the browser, and sets the idle timeout to its lifetime. Changes the session id, also when
   * it throws, because only a new token or a renewal brings a cookie.
   * @throws SessionStateError when no lifetime is configured, or the headers were already sent
   */
  remember(session: Session): void {
    const tracked = rotated(session);
    const maxAge = this.resolver.maxAge({ isRemembered: true });
    if (maxAge === undefined) throw new SessionStateError(NOT_REMEMBERED);
    tracked.setOwnAttribute(REMEMBER_ME_ATTRIBUTE, true);
    tracked.maxInactiveInterval = maxAge;
  }

  /** Undoes `remember()`: the cookie ends with the browser, and the idle timeout is the option `timeout` again. */
  forget(session: Session): void {
    const tracked = rotated(session);
    tracked.removeAttribute(REMEMBER_ME_ATTRIBUTE);
    tracked.maxInactiveInterval = this.options.timeout;
  }
}

/** Without a new token, no cookie would be sent. */
function rotated(session: Session): TrackedSession {
  const tracked = TrackedSession.of(session);
  if (!tracked.isNew) tracked.changeSessionId();
  return tracked;
}
