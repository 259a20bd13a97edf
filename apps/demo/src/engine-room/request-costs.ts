import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Session } from '@nest-session/core';
import { Subject } from 'rxjs';

/** A command that a request sent to Redis. */
interface Command {
  readonly name: string;
  readonly began: number;
  /** Until its reply was read; undefined while there is none. */
  microseconds?: number;
}

/** A message of ioredis about a command. */
interface Trace {
  readonly command: string;
  readonly args: readonly string[];
}

// What never ends, such as a stream of events, is not measured.
const MOST_COMMANDS = 100;

const current = new AsyncLocalStorage<Command[]>();
const sent = new WeakMap<object, Command>();
/** The names of the scripts by their SHA-1: ioredis sends the text of each once. */
const scripts = new Map<string, string>();

/** The requests that have been answered. */
export const answeredRequests = new Subject<{ readonly sessionId: string; readonly [detail: string]: unknown }>();

/** Before all other middleware: what the request sends to Redis from here on is its own. */
export function measureRequest(request: IncomingMessage, response: ServerResponse, next: () => void): void {
  const commands: Command[] = [];
  response.once('finish', () => {
    const sessionId = sessionIdOf(request);
    const [path] = (request.url ?? '').split('?');
    const details = { method: request.method, path, status: response.statusCode, commands };
    if (sessionId) answeredRequests.next({ sessionId, ...details });
  });
  current.run(commands, next);
}

subscribe('tracing:ioredis:command:start', (message) => {
  const { command, args } = message as Trace;
  const commands = current.getStore();
  const began = { name: nameOf(command, args), began: performance.now() };
  if (!commands || commands.length >= MOST_COMMANDS) return;
  commands.push(began);
  sent.set(message as object, began);
});

subscribe('tracing:ioredis:command:asyncEnd', (message) => {
  const command = sent.get(message as object);
  if (command) command.microseconds = Math.round((performance.now() - command.began) * 1000);
});

function nameOf(command: string, [script = '']: readonly string[]): string {
  if (command === 'eval') scripts.set(createHash('sha1').update(script).digest('hex'), titleOf(script));
  return command === 'eval' ? titleOf(script) : (scripts.get(script) ?? command.toUpperCase());
}

function titleOf(script: string): string {
  return `script ${/^ {2}([\w-]+):/m.exec(script)?.[1]}`;
}

/** Of a session that is stored. */
function sessionIdOf(request: IncomingMessage & { readonly session?: Session }): string | undefined {
  try {
    return request.session?.isNew ? undefined : request.session?.id;
  } catch {
    return undefined; // it could not be loaded
  }
}
