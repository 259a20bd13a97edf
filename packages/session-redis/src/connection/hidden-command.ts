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
  const lines: CommandArgument[] = [`*${args.length + 1}`, `$${name.length}`, name];
  let hasBytes = false;
  for (const each of args) {
    if (typeof each === 'object') hasBytes = true;
    const argument = typeof each === 'number' ? String(each) : each;
    lines.push(`$${Buffer.byteLength(argument)}`, argument);
  }
  lines.push('');
  return hasBytes ? Buffer.concat(lines.flatMap(toLine)).subarray(0, -2) : lines.join('\r\n');
}

function toLine(line: CommandArgument): Buffer[] {
  return [typeof line === 'object' ? line : Buffer.from(String(line)), LINE_END];
}

const LINE_END = Buffer.from('\r\n');
