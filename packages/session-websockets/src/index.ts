// `@nest-session/websockets`: sessions in gateways.
export { SessionWebSocketModule } from './session-web-socket.module.js';
export type { SessionWebSocketOptionsFactory } from './configuration/session-web-socket.module-definition.js';
export type { SessionWebSocketModuleOptions } from './configuration/session-web-socket.options.js';
