import { LeakGuard } from '@nest-session/test-infrastructure';
import { closeApps } from '../support/session.app.js';
import { describeAttacks } from './attacks.suite.js';
import { IN_MEMORY } from './device.app.js';

LeakGuard.install();
afterEach(closeApps);

describeAttacks(IN_MEMORY);
