import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { BeanstalkdSessionTimer } from '@nest-session/redis/beanstalkd';
import { BeanstalkdServer, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { BeanstalkdConnection } from '../../src/timers/beanstalkd.connection.js';

LeakGuard.install();
Logger.overrideLogger(false);

it('a BeanstalkdSessionTimer goes on each time that it loses one of its two connections', async () => {
  const server = await BeanstalkdServer.start();
  const opened = jest.spyOn(BeanstalkdConnection, 'open');
  const timer = new BeanstalkdSessionTimer({ host: '127.0.0.1', port: server.port });
  const asked: string[] = [];
  try {
    timer.start(async (id) => void asked.push(id));
    for (let round = 1; round <= 2; round++) {
      for (const [i, lost] of ['for commands', 'for reservations'].entries()) {
        const id = `${round} ${lost}`;
        await eventually(() => timer.schedule(id, 0));
        await eventually(() => expect(asked).toContain(id));
        const last = opened.mock.results.slice(-2);
        const connection = (await last[i]!.value) as BeanstalkdConnection;
        connection.close(new Error('lost'));
        await eventually(() => expect(opened.mock.results.length).toBe(last.length * (2 * round + i)));
      }
    }
  } finally {
    await timer.stop();
    jest.restoreAllMocks();
    await server.kill();
  }
});
