import { WarnOnce } from '@nest-session/core/internal';

const log = new WarnOnce();

/** Tells that a page of another origin was refused where it is too late for a status, because of a changed version. */
export function tellOfLateRefusal(by: 'socket.io' | 'ws' | 'Node.js'): void {
  log.warn(
    by,
    `This version of ${by} passes over the first check of the origin, so pages of other origins are refused after it: ` +
      'install another version',
  );
}
