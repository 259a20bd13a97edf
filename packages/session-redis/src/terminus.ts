// `@nest-session/redis/terminus`: the health of the sessions. Needs the package @nestjs/terminus.
export { SessionHealthIndicator, type SessionHealthOptions } from './health/session-health-indicator.js';
