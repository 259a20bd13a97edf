// `@nest-session/redis/spring`: what an application needs that shares sessions with Spring Session.
export { springSessions } from './application/spring-sessions.js';
export type { SpringAuthentication } from './values/security.context.js';
export { signInAs } from './application/sign-in-as.js';
export { signedInAs } from './application/signed-in-as.js';
export { type SpringJson, SpringJsonSerializer } from './values/spring-json.serializer.js';
