import { LeakGuard } from '@nest-session/test-infrastructure';
import { closeApps } from '../support/session.app.js';
import { IN_MEMORY } from './device.app.js';
import { describeFailureTable } from './failure-table.suite.js';

LeakGuard.install();
afterEach(closeApps);

describeFailureTable(IN_MEMORY);
