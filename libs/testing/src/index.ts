// the sessions of your application
export { TestSessionModule } from './session/test-session.module.js';
export { signIn, type SignedInSession, type SignInOptions } from './session/sign-in.js';
export { sessionOf } from './session/session-of.js';

// the deadlines of your application
export { TestDeadlineModule } from './deadlines/test-deadline.module.js';

// time
export { TestClock } from './clock/test.clock.js';
export { ManualClock } from './clock/manual.clock.js';

// facts to wait for
export { SessionEventRecorder } from './events/session-event.recorder.js';
export { eventually, type EventuallyOptions } from './wait/eventually.js';

// HTTP
export { HttpAgent, type HttpAgentOptions, type HttpRequestOptions, type HttpResponse } from './http/http.agent.js';

// a private Redis
export { RedisServer, type RedisServerOptions } from './redis/redis.server.js';
export { RedisCluster, type RedisClusterOptions } from './redis/redis-cluster.js';
export { freePort } from './net/free-port.js';
