import { type Check, ok, orOk, warning } from './diagnosis.js';

// Milliseconds.
const LARGEST = 1000;

/** The clock of Redis decides when sessions end. */
export const CLOCK: Check = {
  look({ nodes }) {
    const known = nodes.flatMap(({ address, clock }) => (clock ? [{ address, ...clock }] : []));
    if (known.length === 0) return [ok('No server tells its time to this user, so this is unknown')];
    const away = known.filter(({ ahead, error }) => Math.abs(ahead) - error > LARGEST);
    const findings = away.map(({ address, ahead }) =>
      warning(
        `The clock of ${address} is ${Math.abs(ahead)} ms ${ahead > 0 ? 'ahead of' : 'behind'} that of this machine`,
        'Let NTP set both. Sessions end by the clock of Redis, and the times in logs are those of the applications.',
      ),
    );
    const [first, last] = [Math.min(...known.map((each) => each.ahead)), Math.max(...known.map((each) => each.ahead))];
    const error = known.reduce((sum, each) => Math.max(sum, 2 * each.error), 0);
    if (last - first - error > LARGEST) {
      findings.push(
        warning(
          `The clocks of the nodes are up to ${last - first} ms apart`,
          'Let NTP set all of them: each session ends by the clock of its node.',
        ),
      );
    }
    const farthest = Math.max(0, ...known.map(({ ahead }) => Math.abs(ahead)));
    return orOk(findings, `The clocks of Redis and of this machine are ${farthest} ms apart at most`);
  },
};
