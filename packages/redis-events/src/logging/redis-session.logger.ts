import { OneLineLogger } from '@nest-session/core/internal';

/** The only logger of this package. Its context is `RedisSession`. */
export const logger = new OneLineLogger('RedisSession');
