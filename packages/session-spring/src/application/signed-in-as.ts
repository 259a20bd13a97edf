import type { Session } from '@nest-session/core';
import { readSecurityContext, SECURITY_CONTEXT, type SpringAuthentication } from '../values/security.context.js';
import type { PlainValue } from '../values/plain-value.js';

/**
 * Returns who is signed in to a session by Spring Security, and their authorities such as `ROLE_ADMIN`. Undefined if
 * nobody is, or if the context is of a form that cannot be read.
 */
export function signedInAs(session: Pick<Session, 'getAttribute'>): SpringAuthentication | undefined {
  return readSecurityContext(session.getAttribute<PlainValue>(SECURITY_CONTEXT));
}
