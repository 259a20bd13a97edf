import type { TrackedSession } from '@nest-session/core/store';
import type { PrincipalRule, SessionProperties } from '../configuration/principal-rule.js';

/** Keeps the principal of a session what the rule makes of its properties. */
export class PrincipalRecorder {
  #decides: boolean;

  constructor(
    private readonly session: TrackedSession,
    private readonly rule: PrincipalRule,
  ) {
    this.#decides = rule.decides(session.attributeNames);
  }

  /** Sets or removes the principal. A session that the rule decided for stays one when the request removes the reason. */
  record(properties: object): void {
    const { session, rule } = this;
    this.#decides ||= rule.decides(session.attributeNames);
    if (!this.#decides) return;
    const name = rule.nameIn(properties as SessionProperties);
    // Under the same id, as with express-session: the application regenerates the session at a login.
    if (name !== session.principalName) session.setPrincipal(name);
  }
}
