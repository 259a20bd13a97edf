export { ExpressSessionModule } from './express-session.module.js';
export type { ExpressSessionOptionsFactory } from './configuration/express-session.module-definition.js';
export type { ExpressSessionModuleOptions } from './configuration/express-session.options.js';
export type { PrincipalOfSession, SessionProperties } from './configuration/principal-rule.js';
export { ExpressSessionSerializer } from './serializer/express-session.serializer.js';
export type { SessionMembers } from './bag/session-types.js';
