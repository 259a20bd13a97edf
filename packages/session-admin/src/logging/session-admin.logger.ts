import { OneLineLogger } from '@nest-session/core/internal';

/** The logger of the package. */
export const logger = new OneLineLogger('SessionAdmin');
