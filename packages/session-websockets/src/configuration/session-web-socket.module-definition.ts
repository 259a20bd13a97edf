import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { SessionWebSocketModuleOptions } from './session-web-socket.options.js';

/** What a class for `forRootAsync({ useClass })` or `useExisting` must implement. */
export interface SessionWebSocketOptionsFactory {
  /** The options of `SessionWebSocketModule`, or a promise of them; called once, at start. */
  createSessionWebSocketOptions(): SessionWebSocketModuleOptions | Promise<SessionWebSocketModuleOptions>;
}

export const {
  ConfigurableModuleClass: SessionWebSocketModuleDefinition,
  MODULE_OPTIONS_TOKEN: SESSION_WEB_SOCKET_MODULE_OPTIONS,
} = new ConfigurableModuleBuilder<SessionWebSocketModuleOptions>({ moduleName: 'SessionWebSocket' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createSessionWebSocketOptions')
  .build();
