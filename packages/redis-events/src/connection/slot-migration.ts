import type { Redis } from 'ioredis';
import { isReply } from './server-faults.js';

type SendCommand = Redis['sendCommand'];

/** A client for one call while the keys of its slot move: asks the new node where the old one no longer has the key. */
export function duringSlotMigration(from: Redis, to: Redis, isOpen: () => boolean): Redis {
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

/** Lets scripts wait until the keys of their slot have moved: they would make keys on the new node that they derive. */
export function letScriptsWaitForSlotMigration(node: Redis): void {
  const send = node.sendCommand.bind(node);
  node.sendCommand = (command, stream) => {
    const { name, reject } = command;
    if (name === 'eval' || name === 'evalsha') {
      command.reject = (error) => {
        command.reject = reject;
        // At this reply, the client sends it to the same node again.
        command.reject(isReply(error, 'ASK') ? new Error('TRYAGAIN The keys of the slot are moving') : error);
      };
    }
    return send(command, stream);
  };
}

const FAILED = new Error('The call has failed');
