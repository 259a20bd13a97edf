/** The environment that `npm start` passes to each instance of the demo. */
export const environment = {
  /** If undefined, sessions are kept in memory. */
  redisUrl: process.env.SESSION_STORE === 'memory' ? undefined : (process.env.REDIS_URL ?? 'redis://localhost:6379'),
  /** Whether the Redis belongs to the demo, which may then freeze it. */
  ownsRedis: process.env.OWN_REDIS === 'yes',
  instance: `instance ${process.env.INSTANCE ?? 1}`,
  /** The number of instances. If there are several, a killed one is started again. */
  instances: Number(process.env.INSTANCES ?? 1),
  /** Where the shop with express-session listens. If undefined, there is none to compare with. */
  expressSessionUrl: process.env.EXPRESS_SESSION_URL,
};
