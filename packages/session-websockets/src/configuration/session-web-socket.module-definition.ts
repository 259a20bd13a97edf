import { ConfigurableModuleBuilder } from '@nestjs/common';
import { explainInjection } from '@nest-session/core/internal';
import type { SessionWebSocketModuleOptions } from './session-web-socket.options.js';

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
