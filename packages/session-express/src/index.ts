export { ExpressSessionModule, type ExpressSessionOptionsFactory } from './express-session.module.js';
export type { ExpressSessionModuleOptions } from './express-session.options.js';
export type { PrincipalOfSession, SessionProperties } from './principal/principal-rule.js';
export { ExpressSessionSerializer } from './express-session.serializer.js';
export type { SessionMembers } from './bag/session-bag.js';
