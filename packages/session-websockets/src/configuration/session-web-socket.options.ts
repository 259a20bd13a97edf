import { ConfigurableModuleBuilder, type Provider } from '@nestjs/common';
import {
  explainInjection,
  ofSessionModule,
  OptionReader,
  RequestSessions,
  toOrigin,
} from '@nest-session/core/internal';

/** Options of `SessionWebSocketModule.forRoot()`. */
export interface SessionWebSocketModuleOptions {
  /**
   * Other origins whose pages may open connections, such as `https://app.example.com` or `capacitor://localhost`. The
   * pages of the application's own host always may. Browsers send cookies with every WebSocket, so list only pages that
   * may act for their visitors.
   * @default none
   */
  origins?: readonly string[];
}

export function resolveSessionWebSocketOptions(options: SessionWebSocketModuleOptions = {}) {
  const reader = new OptionReader('SessionWebSocketModule', options);
  const origins = reader.value('origins', isList, "a list of origins, such as ['https://app.example.com']") ?? [];
  for (const origin of origins) {
    if (toOrigin(origin) === undefined) {
      reader.problem(
        `Option \`origins\` has ${JSON.stringify(origin)}, which is not an origin: write a scheme and a host ` +
          "without a path, such as 'https://app.example.com'.",
      );
    }
  }
  reader.finish();
  return Object.freeze({ origins: origins.map((each) => toOrigin(each)!) });
}

function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value);
}

/** The interface of a class for `forRootAsync({ useClass })` or `useExisting`. */
export interface SessionWebSocketOptionsFactory {
  /** Returns the options of `SessionWebSocketModule`, or a promise of them. Called once, at start. */
  createSessionWebSocketOptions(): SessionWebSocketModuleOptions | Promise<SessionWebSocketModuleOptions>;
}

export const {
  ConfigurableModuleClass: SessionWebSocketModuleDefinition,
  MODULE_OPTIONS_TOKEN: SESSION_WEB_SOCKET_MODULE_OPTIONS,
} = new ConfigurableModuleBuilder<SessionWebSocketModuleOptions>({ moduleName: 'SessionWebSocket' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createSessionWebSocketOptions')
  .setExtras({}, (definition) => explainInjection('SessionWebSocketModule', definition))
  .build();

export const REQUEST_SESSIONS = Symbol('REQUEST_SESSIONS');

export const requestSessions: Provider = {
  provide: REQUEST_SESSIONS,
  inject: [{ token: RequestSessions, optional: true }],
  useFactory: (sessions: RequestSessions | undefined) => ofSessionModule(sessions, 'SessionWebSocketModule'),
};
