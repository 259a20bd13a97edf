// `@nest-session/redis/spring`: what an application needs that shares sessions with Spring Session.
export { springSessions } from './spring/spring-sessions.js';
export type { SpringAuthentication } from './spring-values/security.context.js';
export { signInAs } from './spring/sign-in-as.js';
export { signedInAs } from './spring/signed-in-as.js';
export { type SpringJson, SpringJsonSerializer } from './spring-values/spring-json.serializer.js';
