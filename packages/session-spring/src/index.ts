// the module
export { SpringSessionModule } from './spring-session.module.js';
export type { SpringSessionOptionsFactory } from './configuration/spring-session.module-definition.js';
export type {
  ReadSpringSessionOptions,
  SharedSpringSessionOptions,
  SpringSessionModuleOptions,
} from './configuration/spring-session.options.js';

// the options of SessionModule
export { springSessions } from './application/spring-sessions.js';

// who is signed in
export { signInAs } from './application/sign-in-as.js';
export { signedInAs } from './application/signed-in-as.js';
export type { SpringAuthentication } from './values/security.context.js';

// values
export { type SpringJson, SpringJsonSerializer } from './values/spring-json.serializer.js';
