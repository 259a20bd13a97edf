import type { Session } from '@nest-session/core';
import type { PrincipalRule, SessionProperties } from '../configuration/principal-rule.js';

/** Keeps the principal of a session what the rule makes of its properties. */
export class PrincipalRecorder {
  #decides: boolean;

  constructor(
    private readonly session: Session,
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
    if (name !== session.principalName) session.principalName = name;
  }
}
