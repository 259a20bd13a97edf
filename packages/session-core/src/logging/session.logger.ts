import { OneLineLogger } from './one-line.logger.js';

/** The one logger of this package: its context is `Session`. */
export const logger = new OneLineLogger('Session');
