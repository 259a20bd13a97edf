import { InvalidSessionOptionsError, SessionStoreError } from '@nest-session/core';
import type { CommandLine } from './command-line.js';
import { UsageError } from './usage.error.js';

type Given = CommandLine['given'];

const IN_WORDS_OF_COMMAND: Readonly<Record<string, string>> = {
  'cluster.nodes': '--cluster',
  cluster: '--cluster',
  sentinels: '--sentinel',
  name: '--master',
  tls: '--tls',
  username: 'REDIS_USERNAME',
  password: 'REDIS_PASSWORD',
  namespace: '--namespace',
  'events.retention': '--retention',
  // A command takes none, and reaches every server by its url.
  client: '--url',
};

/** A text of the library names its options, and whoever runs a command knows those of the command. */
export function inWordsOfCommand(text: string, { url }: Given): string {
  const names: typeof IN_WORDS_OF_COMMAND = { ...IN_WORDS_OF_COMMAND, url: url === undefined ? 'REDIS_URL' : '--url' };
  return text.replace(/(?:[Oo]ptions? )?`([\w.]+)`/g, (word, name: string) => names[name] ?? word);
}

/** The same, for the text of an error. */
export function errorInWordsOfCommand(error: unknown, given: Given): unknown {
  const told = (text: string) => inWordsOfCommand(text, given);
  if (error instanceof InvalidSessionOptionsError)
    return new UsageError(error.problems.map(told).join(' '), { cause: error });
  return error instanceof SessionStoreError ? new SessionStoreError(told(error.message), { cause: error }) : error;
}
