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
  const { cookie: _, ...properties } = stored as SessionProperties;
  const kept = Object.entries(properties).filter(([name, value]) => isName(name) && value !== null);
  const attributes = new Map<string, unknown>(kept);
  return { attributes, principalName: principal?.nameIn(properties) };
}

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
