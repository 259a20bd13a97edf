// a private Redis whose clock can be stepped
export { SteppableRedisServer } from './redis/steppable-redis.server.js';
export { SteppableRedisCluster } from './redis/steppable-redis-cluster.js';

// what promotes a replica of a private Redis
export { Sentinel } from './redis/sentinel.js';

// a private beanstalkd
export { BeanstalkdServer } from './beanstalkd/beanstalkd.server.js';

// a private Prometheus
export { type PrometheusSample, PrometheusServer } from './prometheus/prometheus.server.js';

// between client and server
export { type BegunAnswer, beginRequest } from './net/begun-request.js';
export { type BurstMatcher, TcpProxy, type TcpTarget } from './net/tcp.proxy.js';
export type { Direction } from './net/tcp.connection.js';

// what a test holds and watches
export { Gate } from './gate/gate.js';
export { LogRecorder } from './logging/log.recorder.js';
export { standStill } from './time/stand-still.js';

// processes
export { BoundProcess } from './processes/bound.process.js';
export { Program } from './processes/program.js';

// nothing left behind
export { KeptEntries } from './leaks/kept-entries.js';
export { LeakGuard } from './leaks/leak.guard.js';
