import { InvalidSessionOptionsError } from '@nest-session/core';
import { RequestSessions } from '@nest-session/core/internal';
import type { Provider } from '@nestjs/common';

/** The `RequestSessions` of the application. */
export const REQUEST_SESSIONS = Symbol('REQUEST_SESSIONS');

/** Optional, so that our own error names the missing module. */
export const requestSessions: Provider = {
  provide: REQUEST_SESSIONS,
  inject: [{ token: RequestSessions, optional: true }],
  useFactory: (sessions: RequestSessions | undefined) => {
    if (sessions) return sessions;
    throw new InvalidSessionOptionsError('SessionWebSocketModule', [SESSION_MODULE_MISSING]);
  },
};

const SESSION_MODULE_MISSING =
  'SessionModule is missing: add SessionModule.forRoot() to the imports of the root module.';
