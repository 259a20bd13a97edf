import { Logger } from '@nestjs/common';

/** The one logger of this package: its context is `Session`. */
export const logger: Logger = new Logger('Session');
