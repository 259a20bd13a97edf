import { createHash } from 'node:crypto';
import type { Command, Redis } from 'ioredis';
import { type CommandArgument, encodedCommand, HIDDEN, hiddenCommand } from '../connection/hidden-command.js';
import { isReply } from '../connection/reply.errors.js';

/**
 * A script. Each socket sends its text once, and then its hash, by which Redis knows it. So no call needs a second round
 * trip, and nothing loads scripts in advance. Where Redis has forgotten a script, the call sends its text after all.
 */
export class Script {
  readonly #hash: string;
  /** The sockets that have sent the text. */
  readonly #senders = new WeakSet<object>();

  constructor(private readonly lua: string) {
    this.#hash = createHash('sha1').update(lua).digest('hex');
  }

  run(
    client: Redis,
    numberOfKeys: number,
    keysAndArguments: readonly (CommandArgument | readonly CommandArgument[])[],
  ): Promise<unknown> {
    const sent: CommandArgument[] = [this.#hash, numberOfKeys];
    for (const each of keysAndArguments) {
      if (typeof each === 'object' && !Buffer.isBuffer(each)) sent.push(...each);
      else sent.push(each);
    }
    const reply = client.sendCommand(this.#command(client, sent)) as Promise<unknown>;
    return reply.catch((error: unknown) => {
      if (!isReply(error, 'NOSCRIPT')) throw error;
      return client.sendCommand(this.#command(client, sent, { isUnknown: true }));
    });
  }

  #command(client: Redis, sent: CommandArgument[], { isUnknown = false } = {}): Command {
    const command = hiddenCommand(client, 'evalsha', sent, [this.#hash, sent[1]!, HIDDEN]);
    command.toWritable = (socket) => {
      const isKnown = !isUnknown && this.#senders.has(socket);
      this.#senders.add(socket);
      command.name = isKnown ? 'evalsha' : 'eval';
      sent[0] = isKnown ? this.#hash : this.lua;
      return encodedCommand(command.name, sent);
    };
    return command;
  }
}
