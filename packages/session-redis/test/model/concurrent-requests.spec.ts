import { LeakGuard } from '@nest-session/testing';
import { describeSessions } from './concurrent-requests.js';

LeakGuard.install();

describeSessions(100);
