// a private Redis
export { RedisServer, type RedisServerOptions } from './redis/redis.server.js';

// between client and server
export { TcpProxy, type BurstMatcher, type TcpTarget } from './net/tcp.proxy.js';
export type { Direction } from './net/tcp.connection.js';
export { freePort } from './net/free-port.js';

// HTTP
export { HttpAgent, type HttpAgentOptions, type HttpRequestOptions, type HttpResponse } from './http/http.agent.js';

// facts to wait for
export { SessionEventRecorder } from './events/session-event.recorder.js';
export { eventually, type EventuallyOptions } from './wait/eventually.js';

// the sessions of an application
export { TestSessionModule } from './session/test-session.module.js';
export { signIn, type SignedInSession, type SignInOptions } from './session/sign-in.js';
export { sessionOf } from './session/session-of.js';

// time
export { SessionClock } from './clock/session.clock.js';
export { ManualClock } from './clock/manual.clock.js';

// nothing left behind
export { LeakGuard } from './leaks/leak.guard.js';
