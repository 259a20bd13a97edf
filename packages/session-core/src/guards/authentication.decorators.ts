import { SetMetadata, type Type } from '@nestjs/common';
import { GUARDS_METADATA } from '@nestjs/common/constants.js';
import { putFirstAmong } from '../http/put-first.js';
import { parseDuration } from '../option-reading/duration.js';
import { AuthenticatedGuard } from './authenticated.guard.js';
import { AUTHENTICATION, type AuthenticationRule, PUBLIC, SIGNED_IN } from '../http/authentication-rule.js';

/**
 * Requires a signed-in user, which is a session with a principal. Other clients get a 401 response before the handler
 * runs. Put it on HTTP handlers, GraphQL resolvers and message handlers of gateways, or on a class for all of its
 * handlers. It runs before the guards that `@UseGuards()` puts on the same handler or class. What it lets in is closed
 * when the session ends: a response that is still open, and the connection of a subscription.
 *
 * `@Authenticated()`, `@RecentlyAuthenticated()` or `@Public()` on a handler replaces the one on its class. Two of them
 * on one handler, or on one class, throw a TypeError.
 */
export function Authenticated(): ClassDecorator & MethodDecorator {
  return guarded(SIGNED_IN);
}

/**
 * Requires a user who signed in at most `maxAge` ago, by the clock of the store. Use it where a stolen or forgotten
 * session does most harm, such as a change of the password or of the address. When the `reason` of a 401 response is
 * `'not-recently-authenticated'`, your page asks for the password again.
 * @param maxAge a duration, such as `'5m'`. @throws TypeError for anything else
 */
export function RecentlyAuthenticated(maxAge: string): ClassDecorator & MethodDecorator {
  const milliseconds = parseDuration(maxAge);
  if (typeof milliseconds === 'number' && milliseconds > 0) return guarded({ maxAge: milliseconds });
  const problem = typeof milliseconds === 'string' ? milliseconds : 'must be longer than 0';
  throw new TypeError(`The argument of @RecentlyAuthenticated() ${problem}`);
}

/**
 * Requires no sign-in. It makes an exception to `@Authenticated()` on the class and to the guard of all routes, but not
 * to `@UseGuards(AuthenticatedGuard)` on the same handler.
 */
export function Public(): ClassDecorator & MethodDecorator {
  return marked(PUBLIC);
}

function guarded(rule: AuthenticationRule): ClassDecorator & MethodDecorator {
  // Puts the guard first: `@UseGuards()` appends, whether it is evaluated before or after.
  return marked(rule, (target) => putFirstAmong(AuthenticatedGuard, target, GUARDS_METADATA));
}

/** @throws TypeError if another rule is already set: it is unclear which of the two was meant */
function marked(rule: AuthenticationRule, onMarked?: (target: object) => void): ClassDecorator & MethodDecorator {
  const mark = SetMetadata(AUTHENTICATION, rule);
  return <T>(target: object, key?: string | symbol, descriptor?: TypedPropertyDescriptor<T>) => {
    const place = (descriptor?.value as object | undefined) ?? target;
    const other = Reflect.getOwnMetadata(AUTHENTICATION, place) as AuthenticationRule | undefined;
    if (other !== undefined && other?.maxAge !== rule?.maxAge) {
      const name = key === undefined ? (target as Type).name : `${target.constructor.name}.${String(key)}`;
      throw new TypeError(`${name} has ${decoratorOf(rule)} and ${decoratorOf(other)}: remove one of them`);
    }
    mark(target, key as string, descriptor as PropertyDescriptor);
    onMarked?.(place);
  };
}

function decoratorOf(rule: AuthenticationRule): string {
  if (rule === PUBLIC) return '@Public()';
  return rule.maxAge === Infinity ? '@Authenticated()' : `@RecentlyAuthenticated('${rule.maxAge / 1000}s')`;
}
