import type { RequestSession, TrackedSession } from '@nest-session/core/internal';
import { isOwn } from '../bag/bag-values.js';
import { warnOnce } from '../bag/warn-once.js';
import type { PrincipalRule, SessionProperties } from '../configuration/principal-rule.js';

/**
 * Gives sessions that were stored before the option `principal` was a function, or was another one, the principal that
 * it finds: otherwise `Sessions.endAll()` misses them until the next change. Looks only where a request renews its
 * session, so at most once per `touchInterval`.
 */
export class PrincipalAdoption {
  /** @param isAdmitted whether a session can always get a principal */
  constructor(
    private readonly rule: PrincipalRule | undefined,
    private readonly isAdmitted: boolean,
  ) {}

  /** Before the response. Never throws: what is wrong with the session, its next save says. */
  adopt({ existing, touch }: RequestSession): void {
    const { rule } = this;
    if (!rule || rule.passportKeys || !touch.isDue || !existing || !isUnchanged(existing)) return;
    const name = nameIn(rule, existing);
    if (name === undefined || name === existing.principalName) return;
    warnOnce(this.isAdmitted ? ADOPTED : NOT_ADOPTED);
    if (!this.isAdmitted) return;
    try {
      if (existing.principalName === undefined) existing.adoptPrincipal(name);
      else existing.setPrincipal(name);
    } catch {
      // It holds as much as it may, or cannot get another token any more: nothing has changed.
    }
  }
}

/** A save of changes asks the rule by itself. */
function isUnchanged(session: TrackedSession): boolean {
  return !session.isNew && !session.isGone && !session.isOver && !session.isSet && !session.response?.headersSent;
}

function nameIn(rule: PrincipalRule, session: TrackedSession): string | undefined {
  const properties = {};
  for (const name of session.attributeNames.filter(isOwn)) {
    const get = () => session.peekAttribute(name);
    Object.defineProperty(properties, name, { get, enumerable: true, configurable: true });
  }
  try {
    return rule.nameIn(properties as SessionProperties);
  } catch {
    return undefined;
  }
}

const FOUND =
  'The option `principal` of ExpressSessionModule.forRoot() finds another principal in stored sessions than they were ' +
  'stored with, or the first one. ';

const ADOPTED =
  `${FOUND}A session gets it when a request renews it. Until then, Sessions.endAll(name) does not reach it. This is ` +
  'logged once';

const NOT_ADOPTED =
  `${FOUND}Sessions.endAll(name) does not reach them until their next change, because \`maxSessions\` may refuse them the ` +
  'principal. This is logged once';
