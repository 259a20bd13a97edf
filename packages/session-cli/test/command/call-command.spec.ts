import { PassThrough } from 'node:stream';
import { callCommand } from '../../src/command/call-command.js';
import type { Command } from '../../src/command/command.js';
import { CommandOutput } from '../../src/command/command-output.js';

it('a command that is interrupted while it loads does not begin', async () => {
  const stopping = new AbortController();
  let hasBegun = false;
  const command: Command = {
    name: 'example',
    text: 'An example.',
    options: {},
    async load() {
      stopping.abort();
      return {
        async run() {
          hasBegun = true;
          return 0;
        },
      };
    },
  };
  const output = new CommandOutput(false, new PassThrough(), new PassThrough());
  const line = { command, argument: undefined, given: {} };
  await expect(callCommand(command, line, output, stopping.signal)).rejects.toMatchObject({ name: 'AbortError' });
  expect(hasBegun).toBe(false);
});
