import { LeakGuard } from '@nest-session/test-infrastructure';
import { describeSessions, ALL_VARIANTS } from './concurrent-requests.js';

LeakGuard.install();

describeSessions(10_000, ALL_VARIANTS);
