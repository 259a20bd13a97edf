import { getEventListeners } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { CommandOutput } from '../../src/command/command-output.js';

function streams(isTTY = false) {
  const [result, others] = [new PassThrough(), new PassThrough()];
  const read = (stream: PassThrough) => String(stream.read() ?? '');
  Object.assign(others, { isTTY });
  return { result, others, told: () => [read(result), read(others)] };
}

it('a result is lines, or one line of JSON', () => {
  const { result, others, told } = streams();
  new CommandOutput(false, result, others).report({ a: 1 }, ['one', 'two']);
  new CommandOutput(true, result, others).report({ a: 1 }, ['one', 'two']);
  expect(told()).toEqual(['one\ntwo\n{"a":1}\n', '']);
});

it('foreign text can neither begin a line nor send commands to the terminal', () => {
  const { result, others, told } = streams();
  const foreign = 'a\n\u001b[2Jb\u202Ec\u0085d';
  const escaped = 'a\\u000a\\u001b[2Jb\\u202ec\\u0085d';
  new CommandOutput(false, result, others).report({}, [foreign]);
  expect(told()).toEqual([`${escaped}\n`, '']);
  new CommandOutput(true, result, others).report({ foreign }, []);
  const [json] = told();
  expect(JSON.parse(json!)).toEqual({ foreign });
  expect(json!.trimEnd()).toMatch(/^[ -~]+$/);
  new CommandOutput(false, result, others).note(`first\n${'\u001b'}second`);
  expect(told()).toEqual(['', 'first\n\\u001bsecond\n']);
});

it('progress is for a terminal alone, and is gone before the next line', () => {
  const { result, others, told } = streams(true);
  const output = new CommandOutput(false, result, others);
  output.progress('10 of 20');
  output.progress('20 of 20');
  output.report({}, ['done']);
  expect(told()).toEqual(['done\n', '\r\u001b[K10 of 20\r\u001b[K20 of 20\r\u001b[K']);
  const pipe = streams();
  new CommandOutput(false, pipe.result, pipe.others).progress('10 of 20');
  expect(pipe.told()).toEqual(['', '']);
});

it('what nobody reads any more is left out, and ends nothing', async () => {
  const error = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
  const closed = new Writable({ write: (_chunk, _encoding, done) => done(error) });
  const output = new CommandOutput(false, closed, streams().others);
  output.report({}, ['one']);
  await new Promise((resolve) => closed.once('error', resolve));
  expect(output.closed.aborted).toBe(true);
  output.report({}, ['two']);
  await output.event({}, 'three');
});

it.each([
  ['ENOSPC', ['write ENOSPC']],
  ['EPIPE', []],
])('whoever calls hears of %s while the result is written: %p', async (code, failures) => {
  const broken = new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error(`write ${code}`), { code })),
  });
  const heard: string[] = [];
  const output = new CommandOutput(false, broken, streams().others, ({ message }) => heard.push(message));
  output.report({}, ['one']);
  await new Promise((resolve) => broken.once('error', resolve));
  expect(heard).toEqual(failures);
});

it('a line without an end waits until there is room', async () => {
  const { result, others } = streams();
  const output = new CommandOutput(false, result, others);
  const line = 'x'.repeat(result.writableHighWaterMark);
  let isWritten = false;
  const written = output.event({}, line).then(() => (isWritten = true));
  await new Promise(setImmediate);
  expect(isWritten).toBe(false);
  result.resume();
  await written;
  // Such as of `watch` in a slow terminal.
  for (let i = 0; i < 3; i++) await output.event({}, line);
  expect(getEventListeners(output.closed, 'abort')).toEqual([]);
});
