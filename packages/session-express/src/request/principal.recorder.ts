import type { TrackedSession } from '@nest-session/core/internal';
import type { Update } from '../bag/session-bag.js';
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

  /**
   * The same update of an attribute. It throws where that would make somebody else the principal, because it stores the
   * attribute alone.
   */
  keeping(name: string, update: Update, properties: object): Update {
    const { rule } = this;
    if (!rule.mayRead(name)) return update;
    return (current) => {
      const others = { ...properties };
      // Before the update, which may change the object in place.
      const before = rule.nameIn({ ...others, [name]: current });
      const value = update(current);
      if (rule.nameIn({ ...others, [name]: value }) === before) return value;
      throw new TypeError(
        `req.session.updateAttribute(${JSON.stringify(name)}) would change whose session it is: assign the property ` +
          'instead, after req.session.regenerate()',
      );
    };
  }
}
