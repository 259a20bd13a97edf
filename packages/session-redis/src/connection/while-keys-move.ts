import type { Redis } from 'ioredis';
import { isReply } from './reply.errors.js';

type SendCommand = Redis['sendCommand'];

/**
 * A client for one call while the keys of its slot move from one node to another. It asks the old node for each key and then,
 * where that has no such key any more, the new one. It sends a command when the last one has its reply: each command sees what
 * was there after the last one. It sends nothing once the call has failed.
 */
export function whileKeysMove(from: Redis, to: Redis, isOpen: () => boolean): Redis {
  let last: Promise<unknown> = Promise.resolve();
  const send: SendCommand = (command) => {
    const { reject } = command;
    command.reject = (error) => {
      command.reject = reject;
      if (!isReply(error, 'ASK') || !isOpen()) return command.reject(error);
      void to.asking().catch(() => undefined);
      to.sendCommand(command);
    };
    last = last.then(() => (isOpen() ? from.sendCommand(command) : command.reject(FAILED)));
    last = last.then(() => command.promise).catch(() => undefined);
    return command.promise;
  };
  return Object.create(from, { sendCommand: { value: send } }) as Redis;
}

const FAILED = new Error('The call has failed');
