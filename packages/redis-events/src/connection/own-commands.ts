import { type Cluster, Command, type Redis } from 'ioredis';

type Arguments = ConstructorParameters<typeof Command>;
type Callback = NonNullable<Arguments[3]>;
type Client = Redis | Cluster;

type Method = (this: Client, ...args: unknown[]) => Promise<unknown>;

/** @throws Error that says what to do where the connections use of ioredis what is not there */
export function assertOfIoredis(isThere: boolean, what: string): void {
  if (isThere) return;
  throw new Error(
    `This version of ioredis has no ${what}, which the connections of nest-session need: install ioredis 5.11 or 6.0`,
  );
}

const prototypes = new WeakMap<object, object>();

/**
 * From now on, no transformer touches what a client sends, no script of the same name replaces it, and only Redis sees
 * the arguments: attributes, names of users and ids, which ioredis shows to tracing channels, in errors and in its log.
 * @throws Error where this version of ioredis sends commands in another way
 */
export function sendOwnCommands<T extends Client>(client: T): T {
  assertOfIoredis(typeof client.sendCommand === 'function', '`sendCommand()` of a client');
  assertOfIoredis(typeof commandClassOf(client).prototype.toWritable === 'function', '`toWritable()` of a command');
  const inherited = Object.getPrototypeOf(client) as object;
  const own = prototypes.get(inherited) ?? Object.assign(Object.create(inherited), ownMethods(client));
  prototypes.set(inherited, own);
  return Object.setPrototypeOf(client, own) as T;
}

function ownMethods(client: Client): Readonly<Record<string, Method>> {
  const methods: Record<string, Method> = {
    call: sending((args) => String(args.shift()), 'utf8'),
    callBuffer: sending((args) => String(args.shift()), null),
  };
  // ioredis does more than to send these.
  const others = new Set(['multi', 'exec', ...(client.isCluster ? ['quit'] : [])]);
  for (const name of client.getBuiltinCommands().filter((each) => !others.has(each))) {
    methods[name] = sending(() => name, 'utf8');
    methods[`${name}Buffer`] = sending(() => name, null);
  }
  for (const name of ['hgetall', 'hgetallBuffer']) {
    const ask = methods[name]!;
    methods[name] = function (...args) {
      return ask.apply(this, args).then(toRecord);
    };
  }
  return methods;
}

/** The promise of the command itself: that of ioredis 5 for its own commands is handled by their callbacks alone. */
function sending(nameOf: (args: unknown[]) => string, replyEncoding: 'utf8' | null): Method {
  return function (...args) {
    const name = nameOf(args);
    const callback = typeof args.at(-1) === 'function' ? (args.pop() as Callback) : undefined;
    const sent = args.flatMap(toList).map(toArgument);
    const seen = SEEN.get(name) ?? 0;
    const shown = sent.map((argument, i) => (i < seen ? argument : HIDDEN));
    return this.sendCommand(hiddenCommand(this, name, sent, shown, { replyEncoding }, callback)) as Promise<unknown>;
  };
}

/** HSET takes its fields as an object, too. */
function toList(argument: unknown): unknown {
  if (typeof argument !== 'object' || argument === null || Array.isArray(argument) || Buffer.isBuffer(argument)) {
    return argument;
  }
  return [...(argument instanceof Map ? argument : Object.entries(argument))].flat();
}

function toArgument(argument: unknown): CommandArgument {
  return typeof argument === 'number' || Buffer.isBuffer(argument) ? argument : `${(argument ?? '') as string}`;
}

function toRecord(reply: unknown): unknown {
  const list = reply as unknown[];
  return Object.fromEntries(list.flatMap((field, i) => (i % 2 === 0 ? [[String(field), list[i + 1]]] : [])));
}

type CommandClass = typeof Command;

export const HIDDEN = '?';

/** How many arguments may be seen: all where ioredis reads them, or they say what a connection is for; else none. */
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

export type CommandArgument = string | number | Buffer;

const AS_TEXT = { replyEncoding: 'utf8' } as const;

/** A command whose arguments only Redis sees, `shown` instead of `sent`. It costs less than a method of a client. */
export function hiddenCommand(
  client: Redis | Cluster,
  name: string,
  sent: readonly CommandArgument[],
  shown: CommandArgument[] = [HIDDEN],
  options: Arguments[2] = AS_TEXT,
  callback?: Callback,
): Command {
  const command = new (ownCommandClass(client))(name, shown, options, callback);
  if (client.isCluster) takeSlot(command, sent);
  command.toWritable = () => encodedCommand(command.name, sent);
  return command;
}

function takeSlot(command: Command, sent: readonly CommandArgument[]): void {
  const { args } = command;
  command.args = [...sent];
  command.getSlot();
  Reflect.deleteProperty(command, 'keys');
  command.args = args;
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
  if (!hasBytes) return lines.join('\r\n');
  const all = lines.flatMap((line) => [typeof line === 'object' ? line : Buffer.from(String(line)), LINE_END]);
  return Buffer.concat(all).subarray(0, -2);
}

const LINE_END = Buffer.from('\r\n');

/** Transformers are kept by names that are text, so none can be set for this one. */
const NAMELESS = Symbol('nameless') as unknown as string;

const classes = new WeakMap<CommandClass, CommandClass>();

/** `setReplyTransformer()` and `setArgumentTransformer()` change commands of the whole process, but not these. */
function ownCommandClass(client: Client): CommandClass {
  const theirs = commandClassOf(client);
  const own = classes.get(theirs) ?? untransformed(theirs);
  classes.set(theirs, own);
  return own;
}

/** The application may have another copy of ioredis, whose clients take only its own commands. */
function commandClassOf(client: Client): CommandClass {
  const [one = client] = client.isCluster ? (client as Cluster).nodes() : [];
  return (one.constructor as { readonly Command?: CommandClass }).Command ?? Command;
}

/** ioredis looks for a transformer of arguments when it makes a command, for one of the reply when that has arrived. */
function untransformed(theirs: CommandClass): CommandClass {
  return class extends theirs {
    constructor(name: string, ...others: Arguments extends [unknown, ...infer Rest] ? Rest : never) {
      super(NAMELESS, ...others);
      this.name = name;
    }

    override transformReply(reply: Parameters<Command['transformReply']>[0]) {
      const { name } = this;
      this.name = NAMELESS;
      try {
        return super.transformReply(reply);
      } finally {
        this.name = name;
      }
    }
  };
}
