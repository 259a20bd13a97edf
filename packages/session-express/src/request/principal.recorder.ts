import type { TrackedSession } from '@nest-session/core/internal';
import type { Update } from '../bag/session-bag.js';
import type { PrincipalRule, SessionProperties } from '../configuration/principal-rule.js';

/** Keeps the principal of a session in step with its properties, by the rule. */
export class PrincipalRecorder {
  readonly #authenticatedAt: number | undefined;
  #decides: boolean;

  constructor(
    private readonly session: TrackedSession,
    private readonly rule: PrincipalRule,
  ) {
    this.#authenticatedAt = session.authenticatedAt;
    this.#decides = rule.decides(session.attributeNames);
  }

  /**
   * Sets or removes the principal. Once the rule has decided, it also decides when the request removes the property,
   * unless a `signIn()` of the request did that: then somebody else is signed in.
   */
  record(properties: object): void {
    const { session, rule } = this;
    this.#decides = rule.decides(session.attributeNames) || (this.#decides && !this.#hasSignedIn);
    if (!this.#decides) return;
    const name = rule.nameIn(properties as SessionProperties);
    // Keep the id, as express-session does: the application regenerates the session at a login.
    if (name !== session.principalName) session.setPrincipal(name);
  }

  get #hasSignedIn(): boolean {
    const { authenticatedAt } = this.session;
    return authenticatedAt !== undefined && authenticatedAt !== this.#authenticatedAt;
  }

  /**
   * Wraps an update of an attribute, so that it throws if it would change the principal: the update stores only the
   * attribute.
   */
  keeping(name: string, update: Update, properties: object): Update {
    const { rule } = this;
    if (!rule.mayRead(name)) return update;
    return (current) => {
      const others = { ...properties };
      // Ask before the update, because the update may change the object in place.
      const before = rule.nameIn({ ...others, [name]: current });
      const value = update(current);
      if (rule.nameIn({ ...others, [name]: value }) === before) return value;
      throw new TypeError(
        `req.session.updateAttribute(${JSON.stringify(name)}) would change the principal of the session: call ` +
          'req.session.regenerate(), and then assign the property instead',
      );
    };
  }
}
