import { OneLineLogger } from './one-line.logger.js';

export const logger = new OneLineLogger('Session');
