import type { Cluster, Command, Redis } from 'ioredis';
import { ownCommandClass } from './hide-arguments.js';

type Arguments = ConstructorParameters<typeof Command>;
type Callback = NonNullable<Arguments[3]>;
type Client = Redis | Cluster;

type Method = (this: Client, ...args: unknown[]) => Promise<unknown>;

/** By what the clients inherit. */
const prototypes = new WeakMap<object, object>();

/**
 * From now on, each method of a client sends a command that no transformer touches, and that no script of the same name
 * replaces. All connections of the library are made so.
 */
export function sendOwnCommands<T extends Client>(client: T): T {
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
    const list = args.flatMap(toList) as Arguments[1];
    const command = new (ownCommandClass(this))(name, list, { replyEncoding }, callback);
    return this.sendCommand(command as never) as Promise<unknown>;
  };
}

/** HSET takes its fields as an object, too. */
function toList(argument: unknown): unknown {
  if (typeof argument !== 'object' || argument === null || Array.isArray(argument) || Buffer.isBuffer(argument)) {
    return argument;
  }
  return [...(argument instanceof Map ? argument : Object.entries(argument))].flat();
}

function toRecord(reply: unknown): unknown {
  const list = reply as unknown[];
  return Object.fromEntries(list.flatMap((field, i) => (i % 2 === 0 ? [[String(field), list[i + 1]]] : [])));
}
