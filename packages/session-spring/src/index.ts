export { SpringSessionModule, type SpringSessionOptionsFactory } from './spring-session.module.js';
export type {
  ReadSpringSessionOptions,
  SharedSpringSessionOptions,
  SpringSessionModuleOptions,
} from './spring-session.options.js';
export { springSessions } from './spring-sessions.js';
export { signedInAs, signInAs } from './values/spring-principal.js';
export type { SpringAuthentication } from './values/security-context.js';
export { type SpringJson, SpringJsonSerializer } from './values/spring-json.serializer.js';
