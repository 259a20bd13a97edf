import { COOKIE_MAX_AGE_ATTRIBUTE, REMEMBER_ME_ATTRIBUTE, VISITOR_PREFIX } from './attribute-names.js';

/** Which attributes a session keeps when somebody signs in. */
export interface KeptAttributes {
  /** Exactly these; unset: all but those that are bound to the visitor. */
  readonly only?: readonly string[] | undefined;
  /** The names that are bound to the visitor, besides those that begin with `nest-session.visitor.`. */
  readonly butNot: readonly string[];
}

/** The attributes that say how long the client keeps its token. Each sign-in decides that anew. */
const LIFETIME_ATTRIBUTES: readonly string[] = [REMEMBER_ME_ATTRIBUTE, COOKIE_MAX_AGE_ATTRIBUTE];

/**
 * What a sign-in keeps: exactly `only`, or without that nothing of another principal, and of the same one and of a
 * visitor all but what is bound to the visitor, as `visitorAttributes` are.
 */
export function keptAttributes(
  only: readonly string[] | undefined,
  visitorAttributes: readonly string[],
  isOfAnother = false,
): KeptAttributes {
  if (only !== undefined && !Array.isArray(only))
    throw new TypeError('Option `keep` of signIn() is a list of names of attributes');
  const listed = only ?? (isOfAnother ? [] : undefined);
  return { only: listed && [...listed], butNot: [...visitorAttributes, ...LIFETIME_ATTRIBUTES] };
}

/** Whether a sign-in keeps an attribute. Saves of the old id that are forwarded later may write only these. */
export function isKept(name: string, { only, butNot }: KeptAttributes): boolean {
  if (only) return only.includes(name);
  return !name.startsWith(VISITOR_PREFIX) && !butNot.includes(name);
}
