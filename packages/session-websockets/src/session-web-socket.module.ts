import { type DynamicModule, Inject, Module } from '@nestjs/common';
import { MetadataScanner } from '@nestjs/core';
import type { RequestSessions } from '@nest-session/core/internal';
import {
  REQUEST_SESSIONS,
  requestSessions,
  resolveSessionWebSocketOptions,
  SESSION_WEB_SOCKET_MODULE_OPTIONS,
  SessionWebSocketModuleDefinition,
  type SessionWebSocketModuleOptions,
} from './configuration/session-web-socket.options.js';
import { UpgradeListener } from './connections/upgrade.listener.js';
import { GatewayExplorer } from './gateways/gateway.explorer.js';
import { GatewaySockets } from './gateways/gateway-sockets.js';

/**
 * Gives gateways their sessions over socket.io and ws. Import it once, in the root module, together with
 * `SessionModule`.
 */
@Module({
  providers: [requestSessions, UpgradeListener, GatewaySockets, MetadataScanner, GatewayExplorer],
})
export class SessionWebSocketModule extends SessionWebSocketModuleDefinition {
  /**
   * Returns the module for the imports of the root module.
   * @throws InvalidSessionOptionsError at start, which names all problems of the options
   */
  static override forRoot(options: SessionWebSocketModuleOptions = {}): DynamicModule {
    return super.forRoot(options);
  }

  /** @internal Import it with `forRoot()`. */
  constructor(
    @Inject(SESSION_WEB_SOCKET_MODULE_OPTIONS) options: SessionWebSocketModuleOptions,
    @Inject(REQUEST_SESSIONS) sessions: RequestSessions,
    @Inject(GatewayExplorer) gateways: GatewayExplorer,
  ) {
    super();
    sessions.origins.allow(resolveSessionWebSocketOptions(options).origins);
    gateways.install();
  }
}
