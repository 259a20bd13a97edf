import type { Redis } from 'ioredis';

/**
 * A connection on which the server shows all commands, as `client.monitor()` opens one. ioredis reports an error for
 * each command of others that comes in one piece with the reply to MONITOR: those are left out.
 */
export function monitorOf(client: Redis): Promise<Redis> {
  const monitor = client.duplicate({ monitor: true, lazyConnect: false });
  return new Promise((resolve, reject) => {
    monitor.on('error', (error) => {
      if (!error.message.startsWith('Command queue state error')) reject(error);
    });
    monitor.once('monitoring', () => resolve(monitor));
  });
}
