// `@nest-session/admin`: a page and JSON for administrators of sessions and deadlines.
export { SessionAdminModule } from './session-admin.module.js';
export type { AdminAccess, AdminRight, AdminRights, AdminUsers } from './configuration/session-admin.options.js';
export type { AdminRequest, SessionAdminModuleOptions } from './configuration/session-admin.options.js';
