import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { BeanstalkdServer, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { BeanstalkdSessionTimer } from '@nest-session/timers/beanstalkd';
import { BeanstalkdConnection } from '../../src/beanstalkd-session-timer.js';
import { askBeanstalkd, connectionsTo } from '../support/timer.servers.js';

LeakGuard.install();
const DAY = 86_400_000;
const log: string[] = [];
const record = (line: string) => void log.push(line);
Logger.overrideLogger({ log: record, warn: record, error: record });
beforeEach(() => {
  log.length = 0;
});

it('a BeanstalkdSessionTimer goes on each time that it loses one of its two connections, and leaves none open', async () => {
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
        await eventually(async () => expect(await connectionsTo(server)).toBe(2));
      }
    }
    await timer.stop();
    await eventually(async () => expect(await connectionsTo(server)).toBe(0));
  } finally {
    await timer.stop();
    jest.restoreAllMocks();
    await server.kill();
  }
});

it('a BeanstalkdSessionTimer schedules again when beanstalkd was started again, and says each loss', async () => {
  const server = await BeanstalkdServer.start();
  const timer = new BeanstalkdSessionTimer({ host: '127.0.0.1', port: server.port });
  try {
    timer.start(async () => undefined);
    await timer.schedule('session 0', DAY);
    for (let round = 1; round <= 2; round++) {
      await server.kill();
      await server.start();
      await eventually(() => timer.schedule(`session ${round}`, DAY));
      // The first job of each beanstalkd has this number.
      expect(await askBeanstalkd(server, 'peek 1')).toContain(`session ${round}`);
      await eventually(() =>
        expect(log.map((line) => line.split(',')[0])).toEqual(
          Array.from({ length: round }, () => [
            'beanstalkd does not report ended sessions',
            'beanstalkd reports ended sessions again',
          ]).flat(),
        ),
      );
    }
  } finally {
    await timer.stop();
    await server.kill();
  }
});
