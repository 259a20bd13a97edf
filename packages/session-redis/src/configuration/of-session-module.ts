import { InvalidSessionOptionsError } from '@nest-session/core';

/** What `SessionModule` provides. @throws InvalidSessionOptionsError when the application does not import it */
export function ofSessionModule<T>(provided: T | undefined): T {
  if (provided === undefined) throw new InvalidSessionOptionsError('RedisSessionModule', [SESSION_MODULE_MISSING]);
  return provided;
}

const SESSION_MODULE_MISSING =
  'SessionModule is missing: add SessionModule.forRoot() to the imports of the root module.';
