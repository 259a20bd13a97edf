import { StartedParts } from '../src/spring/started-parts.js';

const ended: string[] = [];
beforeEach(() => void ended.splice(0));

it('ends what has started before a start failed, the last one first', async () => {
  const parts = new StartedParts();
  const end = (name: string) => ended.push(name);
  const start = async () => {
    parts.add('redis', end);
    parts.add('client', end);
    throw new Error('Spring did not start');
  };
  await expect(start()).rejects.toThrow('Spring did not start');
  await parts.stop();
  expect(ended).toEqual(['client', 'redis']);
});

it('ends the others where one cannot end, and tells of it', async () => {
  const parts = new StartedParts();
  parts.add('redis', (name) => ended.push(name));
  parts.add('spring', () => Promise.reject(new Error('It does not end')));
  await expect(parts.stop()).rejects.toThrow('It does not end');
  expect(ended).toEqual(['redis']);
});

it('ends nothing twice', async () => {
  const parts = new StartedParts();
  expect(parts.add('redis', (name) => ended.push(name))).toBe('redis');
  await parts.stop();
  await parts.stop();
  expect(ended).toEqual(['redis']);
});
