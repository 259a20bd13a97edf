import { failureWord } from '../../src/health/session-health.js';

const withCode = (message: string, code: string) => Object.assign(new Error(message), { code });
const reply = (message: string) => Object.assign(new Error(message), { name: 'ReplyError' });

it.each([
  [withCode('connect ECONNREFUSED 10.0.0.1:6379', 'ECONNREFUSED'), 'ECONNREFUSED'],
  [Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
  [withCode('getaddrinfo ENOTFOUND redis.internal', 'ENOTFOUND'), 'ENOTFOUND'],
  [withCode('certificate has expired', 'CERT_HAS_EXPIRED'), 'CERT_HAS_EXPIRED'],
  [reply('WRONGPASS invalid username-password pair or user is disabled.'), 'WRONGPASS'],
  [reply("NOPERM User ann has no permissions to run the 'hgetall' command"), 'NOPERM'],
  [reply('MOVED 3999 10.0.0.1:6381'), 'MOVED'],
  [reply('a module replies what it likes'), undefined],
  [withCode('a library has codes of its own', 'secret of ann'), undefined],
  [new Error('ANN is no word of a reply'), undefined],
  ['WRONGPASS', undefined],
  [undefined, undefined],
])('the word of %p is %p', (error, word) => {
  expect(failureWord(error)).toBe(word);
});
