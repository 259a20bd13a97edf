import type { SessionTimer } from '@nest-session/redis';
import { BeanstalkdServer } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { BeanstalkdSessionTimer } from '@nest-session/timers/beanstalkd';
import { BullMqSessionTimer } from '@nest-session/timers/bullmq';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { BeanstalkdConnection } from '../../src/beanstalkd-session-timer.js';

/** The server of a timer, without persistence. */
export interface TestTimerServer {
  /** What `TIMER_SERVER` of a worker process names. */
  readonly address: string;
  timer(): SessionTimer;
  /** Puts jobs past every timer: an id and a delay in whole seconds each. */
  put(jobs: readonly (readonly [id: string, delay: number])[]): Promise<void>;
  kill(): Promise<void>;
  /** Without what it knew. */
  restart(): Promise<void>;
  /** Expects that every timer has closed its connections. */
  close(): Promise<void>;
}

/** How to start the server of each timer. */
export const TIMER_SERVERS: readonly (readonly [name: string, open: () => Promise<TestTimerServer>])[] = [
  [
    'BeanstalkdSessionTimer',
    async () => {
      const server = await BeanstalkdServer.start();
      return {
        address: `beanstalkd ${server.port}`,
        timer: () => new BeanstalkdSessionTimer({ host: '127.0.0.1', port: server.port }),
        put: async (jobs) => {
          const address = { host: '127.0.0.1', port: server.port, tube: 'session-ends' };
          const connection = await BeanstalkdConnection.open(address);
          for (const [id, delay] of jobs) await connection.put(id, delay);
          connection.close();
        },
        kill: () => server.kill(),
        restart: () => server.start(),
        close: async () => {
          if (server.isRunning) await eventually(async () => expect(await connectionsTo(server)).toBe(0));
          await server.kill();
        },
      };
    },
  ],
  [
    'BullMqSessionTimer',
    async () => {
      const server = await RedisServer.start();
      return {
        address: `bullmq ${server.port}`,
        timer: () => new BullMqSessionTimer({ connection: { host: '127.0.0.1', port: server.port } }),
        put: async (jobs) => {
          const queue = new Queue('{session-ends}', { connection: { host: '127.0.0.1', port: server.port } });
          // BullMQ ignores a job whose id another one has.
          for (const [jobId, delay] of jobs) {
            await queue.remove(jobId);
            await queue.add('session-end', null, { jobId, delay: delay * 1000, removeOnComplete: true });
          }
          await queue.close();
        },
        kill: () => server.kill(),
        restart: () => server.restart(),
        close: async () => {
          if (server.isRunning) await eventually(async () => expect(await clientsOf(server)).toBe(0));
          await server.stop();
        },
      };
    },
  ],
];

/** How many connections a beanstalkd has, this one left out. */
export async function connectionsTo(server: BeanstalkdServer): Promise<number> {
  return Number(/current-connections: (\d+)/.exec(await askBeanstalkd(server, 'stats'))?.[1]) - 1;
}

/** The reply of a beanstalkd to a command, on a connection of its own. */
export async function askBeanstalkd({ port }: BeanstalkdServer, command: string): Promise<string> {
  const socket = createConnection(port, '127.0.0.1');
  socket.write(`${command}\r\n`);
  const [reply] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return reply.toString();
}

/** How many clients a Redis has, this one left out. */
async function clientsOf({ url }: RedisServer): Promise<number> {
  const client = new Redis(url);
  const list = String(await client.client('LIST'));
  client.disconnect();
  return list.trim().split('\n').length - 1;
}
