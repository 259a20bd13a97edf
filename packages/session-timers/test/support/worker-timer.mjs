// The timer of a worker process, on the server that `TIMER_SERVER` names, such as `beanstalkd 11300`.
import { BeanstalkdSessionTimer } from '@nest-session/timers/beanstalkd';
import { BullMqSessionTimer } from '@nest-session/timers/bullmq';

const [kind, port] = process.env.TIMER_SERVER.split(' ');
const address = { host: '127.0.0.1', port: Number(port) };

export const timer =
  kind === 'bullmq' ? new BullMqSessionTimer({ connection: address }) : new BeanstalkdSessionTimer(address);
