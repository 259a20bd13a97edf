import { tracingChannel } from 'node:diagnostics_channel';
import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { listen } from '../../src/channels/call-telemetry.js';

interface Message {
  readonly name: string;
  error?: unknown;
}

const channel = tracingChannel<Message, Message>('nest-session-test:listen');
const told: string[] = [];
let stop: () => void;

beforeEach(() => {
  told.length = 0;
  stop = listen(channel, ({ name }) => {
    if (name === 'fails') throw new Error('The listener fails on purpose');
    if (name === 'other') return undefined;
    told.push(`${name} begins`);
    return () => void told.push(`${name} ends`);
  });
});
afterEach(() => stop());

const call = (name: string) => channel.tracePromise(async () => void told.push(name), { name });

it('tells the begin and the end of a call', async () => {
  await call('load');
  expect(told).toEqual(['load begins', 'load', 'load ends']);
});

it('tells the end of a call that rejects', async () => {
  const rejected = channel.tracePromise(async () => Promise.reject(new Error('late')), { name: 'load' });
  expect(told).toEqual(['load begins']);
  await expect(rejected).rejects.toThrow('late');
  expect(told).toEqual(['load begins', 'load ends']);
});

it('tells the end of a call that throws at once', () => {
  const throwing = () => {
    throw new Error('at once');
  };
  expect(() => channel.tracePromise(throwing, { name: 'load' })).toThrow('at once');
  expect(told).toEqual(['load begins', 'load ends']);
});

it('leaves out calls that it does not want, and harms none when it fails', async () => {
  const log = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
  await call('other');
  await call('fails');
  expect(told).toEqual(['other', 'fails']);
  expect(log).toHaveBeenCalledTimes(1);
  log.mockRestore();
});

it('tells nothing after it has stopped', async () => {
  stop();
  await call('load');
  expect(told).toEqual(['load']);
});
