import { OneLineLogger } from './one-line.logger.js';

/** The only logger of this package. Its context is `Session`. */
export const logger = new OneLineLogger('Session');
