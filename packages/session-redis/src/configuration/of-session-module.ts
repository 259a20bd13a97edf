import { InvalidSessionOptionsError } from '@nest-session/core';

/**
 * What `SessionModule` provides. `module`: the name of the one that needs it.
 * @throws InvalidSessionOptionsError when the application does not import it
 */
export function ofSessionModule<T>(provided: T | undefined, module = 'RedisSessionModule'): T {
  if (provided === undefined) throw new InvalidSessionOptionsError(module, [SESSION_MODULE_MISSING]);
  return provided;
}

const SESSION_MODULE_MISSING =
  'SessionModule is missing: add SessionModule.forRoot() to the imports of the root module.';
