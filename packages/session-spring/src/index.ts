// the module
export { SpringSessionModule, type SpringSessionOptionsFactory } from './spring-session.module.js';
export type {
  ReadSpringSessionOptions,
  SharedSpringSessionOptions,
  SpringSessionModuleOptions,
} from './spring-session.options.js';

// the options of SessionModule
export { springSessions } from './spring-sessions.js';

// who is signed in
export { signedInAs, signInAs } from './values/spring-principal.js';
export type { SpringAuthentication } from './values/security-context.js';

// values
export { type SpringJson, SpringJsonSerializer } from './values/spring-json.serializer.js';
