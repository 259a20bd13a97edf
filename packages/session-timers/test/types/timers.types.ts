// What applications write, and what must not compile, against the built types. Checked by npm run typecheck.
import { RedisSessionModule } from '@nest-session/redis';
import { BeanstalkdSessionTimer } from '@nest-session/timers/beanstalkd';
import { BullMqSessionTimer } from '@nest-session/timers/bullmq';
import { Cluster, Redis } from 'ioredis';

export function timers(): unknown[] {
  return [
    RedisSessionModule.forRoot({ expirations: new BeanstalkdSessionTimer() }),
    RedisSessionModule.forRoot({
      expirations: new BeanstalkdSessionTimer({ host: 'jobs', port: 11_300, tube: 'ends' }),
    }),
    RedisSessionModule.forRoot({
      expirations: new BullMqSessionTimer({ connection: { host: 'jobs' }, queue: 'ends' }),
    }),
    new BullMqSessionTimer({ connection: new Redis({ maxRetriesPerRequest: null }) }),
    new BullMqSessionTimer({ connection: new Cluster([]) }),
    // @ts-expect-error a class, not an instance
    RedisSessionModule.forRoot({ expirations: BullMqSessionTimer }),
    // @ts-expect-error without a connection
    new BullMqSessionTimer({ queue: 'ends' }),
    // @ts-expect-error a url
    new BullMqSessionTimer({ connection: 'redis://jobs' }),
    // @ts-expect-error a port as text
    new BeanstalkdSessionTimer({ port: '11300' }),
  ];
}
