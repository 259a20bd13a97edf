import { LeakGuard } from '@nest-session/test-infrastructure';
import { describeFuzzedRequests } from './fuzzing/fuzzed-requests.js';

LeakGuard.install();

// To each of eight applications: 20,000 in all.
describeFuzzedRequests(2500);
