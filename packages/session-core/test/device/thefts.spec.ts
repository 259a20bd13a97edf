import { LeakGuard } from '@nest-session/test-infrastructure';
import { closeApps } from '../support/session.app.js';
import { IN_MEMORY } from './device.app.js';
import { describeThefts } from './thefts.suite.js';

LeakGuard.install();
afterEach(closeApps);

describeThefts(IN_MEMORY);
