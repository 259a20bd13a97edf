import type { Type } from '@nestjs/common';
import type { OptionReader } from '../option-reading/option.reader.js';
import type { SecurityLevel } from '../option-reading/security-level.js';
import { AliasedSessionIdResolver } from '../resolvers/aliased-session-id.resolver.js';
import { CookieSessionIdResolver } from '../resolvers/cookie-session-id.resolver.js';
import type { CookieOptions } from '../resolvers/cookie.options.js';
import { SessionIdResolver } from '../resolvers/session-id.resolver.js';
import { strictResolverProblems } from '../option-reading/strict-security.js';

/**
 * Reads what carries the token: a resolver, the class of one, or the cookie, of which a browser may have several.
 * Returns what makes it, to be called when all options are found right.
 */
export function readResolver(
  reader: OptionReader,
  options: { readonly cookie?: CookieOptions },
  security: SecurityLevel,
): () => SessionIdResolver | Type<SessionIdResolver> {
  const given = reader.value('sessionIdResolver', isResolver, 'a SessionIdResolver, or the class of one');
  const multipleSessions = reader.boolean('multipleSessions', false);
  if (given === undefined) {
    return () => new (multipleSessions ? AliasedSessionIdResolver : CookieSessionIdResolver)(options.cookie, security);
  }
  if (options.cookie !== undefined) reader.problem(COOKIE_WITHOUT_EFFECT);
  if (multipleSessions) {
    reader.problem('Option `multipleSessions` needs cookies of its own: remove it, or `sessionIdResolver`.');
  }
  if (security === 'strict' && given instanceof SessionIdResolver) {
    for (const problem of strictResolverProblems(given)) reader.problem(problem);
  }
  return () => given;
}

const COOKIE_WITHOUT_EFFECT =
  'Option `cookie` has no effect beside `sessionIdResolver`: remove it, or give it to new CookieSessionIdResolver({ ... }).';

function isResolver(value: unknown): value is SessionIdResolver | Type<SessionIdResolver> {
  const prototype: unknown = typeof value === 'function' ? value.prototype : value;
  return prototype instanceof SessionIdResolver;
}
