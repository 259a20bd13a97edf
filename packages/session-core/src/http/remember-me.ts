import { Inject, Injectable } from '@nestjs/common';
import { SessionStateError } from '../errors/session.errors.js';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import type { Session } from '../session/session.js';
import { SessionIdResolver } from '../resolvers/session-id.resolver.js';

/** The attribute of a session whose cookie outlives the browser. */
export const REMEMBER_ME_ATTRIBUTE = 'nest-session.rememberMe';

/** Keeps users signed in when they close their browser, as long as the option `cookie.rememberMe` says. */
@Injectable()
export class RememberMe {
  constructor(
    @Inject(SessionIdResolver) private readonly resolver: SessionIdResolver,
    @Inject(SESSION_OPTIONS) private readonly options: Pick<ResolvedSessionOptions, 'timeout'>,
  ) {}

  /**
   * Has the cookie of a session outlive the browser, and the session last as long without access as the cookie: from now
   * on, whenever the cookie is sent. To be called by the login, first of all: it changes the id, as that has to do, also
   * when it throws.
   * @throws SessionStateError when nothing says how long, or no cookie can follow any more
   */
  remember(session: Session): void {
    rotate(session);
    const maxAge = this.resolver.maxAge({ isRemembered: true });
    if (maxAge === undefined) {
      throw new SessionStateError("Nobody can be remembered: set the option `cookie.rememberMe`, such as to '30d'");
    }
    session.setAttribute(REMEMBER_ME_ATTRIBUTE, true);
    session.maxInactiveInterval = maxAge;
  }

  /** Takes that back: the cookie ends with the browser, and the session after the option `timeout` without access. */
  forget(session: Session): void {
    rotate(session);
    session.removeAttribute(REMEMBER_ME_ATTRIBUTE);
    session.maxInactiveInterval = this.options.timeout;
  }
}

/** A cookie is sent only for a new token. */
function rotate(session: Session): void {
  if (!session.isNew) session.changeSessionId();
}
