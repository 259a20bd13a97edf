import { LeakGuard } from '@nest-session/test-infrastructure';
import { closeApps } from '../support/session.app.js';
import { describeBoundSessions } from './device-bound.suite.js';
import { IN_MEMORY } from './device.app.js';

LeakGuard.install();
afterEach(closeApps);

describeBoundSessions(IN_MEMORY);
