// `@nest-session/websockets`: sessions in gateways.
export { SessionWebSocketModule } from './session-web-socket.module.js';
export type {
  SessionWebSocketModuleOptions,
  SessionWebSocketOptionsFactory,
} from './configuration/session-web-socket.options.js';
