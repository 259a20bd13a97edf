import { Logger } from '@nestjs/common';

/** The one logger of this package: its context is `RedisSession`. */
export const logger: Logger = new Logger('RedisSession');
