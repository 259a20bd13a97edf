import type { Cluster, Redis } from 'ioredis';
import { HIDDEN } from './hidden-command.js';

type SentCommand = Parameters<Cluster['sendCommand']>;
type Command = SentCommand[0];
type Drop<T extends unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never;

/**
 * How many arguments may be seen, by command; of any other one none may. Those of a script: its hash and the number of
 * its keys. Of the rest all, because ioredis itself reads them, or because they say only what a connection is for.
 */
const SEEN = new Map([
  ['eval', 2],
  ['evalsha', 2],
  ...['select', 'subscribe', 'psubscribe', 'ssubscribe', 'unsubscribe', 'punsubscribe', 'sunsubscribe'].map(all),
  ...['xread', 'xreadgroup', 'xinfo', 'xrange', 'xrevrange', 'xlen', 'wait'].map(all),
  ...['client', 'cluster', 'config', 'info'].map(all),
]);

function all(command: string): [string, number] {
  return [command, Infinity];
}

/**
 * From now on, the arguments of the commands that a client sends are `?` for everybody but Redis. ioredis shows them to
 * whoever subscribes to its tracing channels, to instrumentations, in errors and in its debug log. All of these take
 * what they need not hide by the name of the command, and nothing of a script. Our arguments are attributes, names of
 * users, and ids, which may be tokens.
 */
export function hideArguments<Client extends Redis | Cluster>(client: Client): Client {
  const send = client.sendCommand.bind(client) as Cluster['sendCommand'];
  client.sendCommand = (command: Command, ...where: Drop<SentCommand>) => {
    // The client of a Cluster finds the node by the slot of the keys. A command also keeps those.
    if (client.isCluster) {
      command.getSlot();
      Reflect.deleteProperty(command, 'keys');
    }
    hideArgumentsOf(command, SEEN.get(command.name) ?? 0);
    return send(command, ...where);
  };
  return client;
}

function hideArgumentsOf(command: Command, seen: number): void {
  const { args, toWritable } = command;
  // It is a hiddenCommand(), or is sent again.
  if (args.length <= seen || Object.hasOwn(command, 'toWritable')) return;
  const shown = args.map((argument, i) => (i < seen ? argument : HIDDEN));
  command.args = shown;
  command.toWritable = (socket) => {
    command.args = args;
    try {
      return toWritable.call(command, socket);
    } finally {
      // A script is sent by its text, where the connection does not know it yet.
      for (let i = 0; i < seen; i++) shown[i] = args[i]!;
      command.args = shown;
    }
  };
}
