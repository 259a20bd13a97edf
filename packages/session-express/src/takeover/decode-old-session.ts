import { JsonAttributeSerializer } from '@nest-session/core';
import type { ForeignSessionData } from '@nest-session/core/internal';
import { isOwn } from '../bag/bag-values.js';
import type { PrincipalRule, SessionProperties } from '../configuration/principal-rule.js';

/**
 * Decodes the text that connect-redis stored: JSON of the properties, including the cookie.
 * @throws TypeError when the user of the session has no name
 */
export function decodeOldSession(text: string, principal: PrincipalRule | undefined): ForeignSessionData | undefined {
  const stored = parsed(text);
  if (typeof stored !== 'object' || stored === null || !('cookie' in stored)) return undefined;
  const { cookie, ...properties } = stored as SessionProperties;
  const kept = Object.entries(properties).filter(([name, value]) => isName(name) && value !== null);
  const attributes = new Map<string, unknown>(kept);
  const { originalMaxAge } = (cookie ?? {}) as { readonly originalMaxAge?: unknown };
  const longestLife =
    typeof originalMaxAge === 'number' && originalMaxAge > 0 ? Math.ceil(originalMaxAge) : DEFAULT_LIFE;
  return { attributes, principalName: principal?.nameIn(properties), longestLife: Math.min(longestLife, LONGEST_LIFE) };
}

/** The `ttl` of connect-redis, for a cookie without a lifetime: a day, in milliseconds. */
const DEFAULT_LIFE = 86_400_000;
/** Browsers keep no cookie for longer than 400 days. */
const LONGEST_LIFE = 400 * DEFAULT_LIFE;

/** Whether stores can keep an attribute of this name and the application may set it. */
function isName(name: string): boolean {
  return name !== '' && isOwn(name) && !/\p{Surrogate}/u.test(name);
}

const json = new JsonAttributeSerializer();

function parsed(text: string): unknown {
  try {
    return json.deserialize(text);
  } catch {
    return undefined;
  }
}
