import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Session } from '@nest-session/core';
import { Subject } from 'rxjs';

/** A command that a request sent to Redis, with the microseconds until its reply was read, or undefined until then. */
type Command = { readonly name: string; readonly began: number; microseconds?: number };

// Responses that never end, such as event streams, are not measured.
const MOST_COMMANDS = 100;

/** The commands of the current request. */
const commandsOfRequest = new AsyncLocalStorage<Command[]>();
/** The commands by their message of ioredis, which is the same object when a command ends. */
const sent = new WeakMap<object, Command>();
/** The names of the scripts by their SHA-1: ioredis sends the text of each once. */
const scripts = new Map<string, string>();

/** The finished requests, for the journal. */
export const answeredRequests = new Subject<{ sessionId: string | undefined; [detail: string]: unknown }>();

/** Runs before all other middleware. It counts all commands that the request sends to Redis from here on. */
export function measureRequest(request: IncomingMessage, response: ServerResponse, next: () => void): void {
  const commands: Command[] = [];
  response.once('finish', () => {
    const [{ method, url }, status] = [request, response.statusCode];
    answeredRequests.next({ sessionId: storedIdOf(request), method, path: url?.split('?')[0], status, commands });
  });
  commandsOfRequest.run(commands, next);
}

subscribe('tracing:ioredis:command:start', (message) => {
  const { command, args } = message as { readonly command: string; readonly args: readonly string[] };
  const started = { name: nameOf(command, args), began: performance.now() };
  const commands = commandsOfRequest.getStore();
  if (commands && commands.length < MOST_COMMANDS) sent.set(message as object, started);
  if (sent.has(message as object)) commands?.push(started);
});

subscribe('tracing:ioredis:command:asyncEnd', (message) => {
  const command = sent.get(message as object);
  if (command) command.microseconds = Math.round((performance.now() - command.began) * 1000);
});

function nameOf(command: string, [script = '']: readonly string[]): string {
  if (command === 'evalsha') return scripts.get(script) ?? command;
  if (command !== 'eval') return command.toUpperCase();
  const name = `script ${/^ {2}([\w-]+):/m.exec(script)?.[1]}`;
  scripts.set(createHash('sha1').update(script).digest('hex'), name);
  return name;
}

function storedIdOf(request: IncomingMessage & { readonly session?: Session }): string | undefined {
  try {
    return request.session?.isNew ? undefined : request.session?.id;
  } catch {
    return undefined; // it could not be loaded
  }
}
