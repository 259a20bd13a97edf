import { LeakGuard } from '@nest-session/test-infrastructure';
import { describeSessions } from './concurrent-requests.js';

LeakGuard.install();

describeSessions(50);
