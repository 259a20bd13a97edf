import { Logger } from '@nestjs/common';

/** The only logger of this package. Its context is `RedisSession`. */
export const logger: Logger = new Logger('RedisSession');
