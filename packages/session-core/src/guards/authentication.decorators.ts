import { SetMetadata, type Type } from '@nestjs/common';
import { GUARDS_METADATA } from '@nestjs/common/constants.js';
import { putFirstAmong } from '../http/put-first.js';
import { parseDuration } from '../option-reading/duration.js';
import { AuthenticatedGuard } from './authenticated.guard.js';
import { AUTHENTICATION, type AuthenticationRule, PUBLIC, SIGNED_IN } from './authentication-rule.js';

/**
 * Requires a signed-in user: a session with a principal. Others get a 401 response before the handler runs. For handlers
 * of HTTP, resolvers of GraphQL and message handlers of gateways, or for all of a class. It runs before the guards that
 * you put on the same handler or class by `@UseGuards()`.
 *
 * Of `@Authenticated()`, `@RecentlyAuthenticated()` and `@Public()`, the one on a handler replaces the one on its class.
 * Two of them on one handler, or on one class, throw a TypeError.
 */
export function Authenticated(): ClassDecorator & MethodDecorator {
  return guarded(SIGNED_IN);
}

/**
 * The same, and requires that the user has signed in at most `maxAge` ago, by the clock of the store. Use it where a
 * stolen or forgotten session would cost most, such as a change of the password or of the address. A 401 response whose
 * `reason` is `'not-recently-authenticated'` tells your page to ask for the password.
 * @param maxAge a duration, such as `'5m'`. @throws TypeError for anything else
 */
export function RecentlyAuthenticated(maxAge: string): ClassDecorator & MethodDecorator {
  const milliseconds = parseDuration(maxAge);
  if (typeof milliseconds === 'number' && milliseconds > 0) return guarded({ maxAge: milliseconds });
  const problem = typeof milliseconds === 'string' ? milliseconds : 'must be longer than 0';
  throw new TypeError(`The argument of @RecentlyAuthenticated() ${problem}`);
}

/**
 * Requires nobody to be signed in: an exception to `@Authenticated()` on the class, or to the guard of all routes. Not to
 * `@UseGuards(AuthenticatedGuard)` on the same handler.
 */
export function Public(): ClassDecorator & MethodDecorator {
  return marked(PUBLIC);
}

function guarded(rule: AuthenticationRule): ClassDecorator & MethodDecorator {
  // First: `@UseGuards()` adds to the end, whether it is evaluated before or after.
  return marked(rule, (target) => putFirstAmong(AuthenticatedGuard, target, GUARDS_METADATA));
}

/** @throws TypeError where another rule is marked already: which of the two was meant, nobody knows */
function marked(rule: AuthenticationRule, onMarked?: (target: object) => void): ClassDecorator & MethodDecorator {
  const mark = SetMetadata(AUTHENTICATION, rule);
  return <T>(target: object, key?: string | symbol, descriptor?: TypedPropertyDescriptor<T>) => {
    const place = (descriptor?.value as object | undefined) ?? target;
    const other = Reflect.getOwnMetadata(AUTHENTICATION, place) as AuthenticationRule | undefined;
    if (other !== undefined && other?.maxAge !== rule?.maxAge) {
      const name = key === undefined ? (target as Type).name : `${target.constructor.name}.${String(key)}`;
      throw new TypeError(`${name} has ${decoratorOf(rule)} and ${decoratorOf(other)}: leave one of them`);
    }
    mark(target, key as string, descriptor as PropertyDescriptor);
    onMarked?.(place);
  };
}

function decoratorOf(rule: AuthenticationRule): string {
  if (rule === PUBLIC) return '@Public()';
  return rule.maxAge === Infinity ? '@Authenticated()' : `@RecentlyAuthenticated('${rule.maxAge / 1000}s')`;
}
