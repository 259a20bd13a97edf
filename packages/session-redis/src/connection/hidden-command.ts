import { type Cluster, Command, type Redis } from 'ioredis';

export type CommandArgument = string | number | Buffer;

/** What everybody but Redis sees of an argument. */
export const HIDDEN = '?';

const AS_TEXT = { replyEncoding: 'utf8' } as const;

/**
 * A command whose arguments only Redis sees: see hideArguments(). Requests send most of their commands so, because it costs
 * less than a method of a client, whose command has to be changed.
 * @param shown what everybody sees of the arguments `sent`
 */
export function hiddenCommand(
  client: Redis | Cluster,
  name: string,
  sent: readonly CommandArgument[],
  shown: CommandArgument[] = [HIDDEN],
): Command {
  const command = new (commandClassOf(client))(name, shown, AS_TEXT);
  if (client.isCluster) takeSlot(command, sent);
  command.toWritable = () => encodedCommand(command.name, sent);
  return command;
}

/** The client of a Cluster finds the node by the slot of the keys. */
function takeSlot(command: Command, sent: readonly CommandArgument[]): void {
  const { args } = command;
  command.args = [...sent];
  command.getSlot();
  // It keeps the keys as well.
  Reflect.deleteProperty(command, 'keys');
  command.args = args;
}

/** The application may have another copy of ioredis, whose clients take only its own commands. */
function commandClassOf(client: Redis | Cluster): typeof Command {
  const [one = client] = client.isCluster ? (client as Cluster).nodes() : [];
  return (one.constructor as { readonly Command?: typeof Command }).Command ?? Command;
}

/** A command in the protocol of Redis. As text it is faster, and few commands have anything else. */
export function encodedCommand(name: string, args: readonly CommandArgument[]): string | Buffer {
  let encoded = `*${args.length + 1}\r\n$${name.length}\r\n${name}\r\n`;
  let bytes: Buffer[] | undefined;
  for (const each of args) {
    if (typeof each === 'object') {
      (bytes ??= []).push(Buffer.from(`${encoded}$${each.length}\r\n`), each);
      encoded = '\r\n';
    } else {
      const text = typeof each === 'string' ? each : String(each);
      encoded += `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
    }
  }
  return bytes ? Buffer.concat([...bytes, Buffer.from(encoded)]) : encoded;
}
