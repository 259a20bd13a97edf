import { createHash } from 'node:crypto';
import type { Command, Redis } from 'ioredis';
import { type CommandArgument, encodedCommand, HIDDEN, hiddenCommand } from '../connection/own-commands.js';
import { isReply } from '../connection/server-faults.js';

export type RunScript<Name extends string> = <Reply>(
  name: Name,
  keys: readonly string[],
  args?: readonly CommandArgument[],
) => Promise<Reply>;

export type ScriptsOn<Scripts> = (client: Redis) => Scripts;

export function scriptsOn<Scripts>(make: ScriptsOn<Scripts>): ScriptsOn<Scripts> {
  const made = new WeakMap<Redis, Scripts>();
  return (client) => {
    const known = made.get(client);
    if (known) return known;
    const scripts = make(client);
    made.set(client, scripts);
    return scripts;
  };
}

type ScriptIn<Path, Folder extends string> = Path extends `${Folder}/${infer Name}` ? Name : never;

export function loadScripts<Sources extends ScriptSources, Folder extends string>(
  sources: Sources,
  ...folders: Folder[]
) {
  const paths = Object.keys(sources).map((path) => path.split('/') as [folder: Folder, name: string]);
  const named = paths.filter(([folder]) => folders.includes(folder));
  const texts = named.map(([folder, name]) => [name, loadScript(sources, `${folder}/${name}`)]);
  return Object.fromEntries(texts) as Record<ScriptIn<keyof Sources, Folder>, string>;
}

export function defineScripts<Name extends string>(
  client: Redis,
  sources: Readonly<Record<Name, string>>,
): RunScript<Name> {
  const scripts = new Map(Object.entries<string>(sources).map(([name, lua]) => [name, runOn(client, lua)]));
  return (name, keys, args = []) => scripts.get(name)!(keys, args) as Promise<never>;
}

/** Each socket sends the text once, then its hash: no call needs a second round trip unless Redis has forgotten it. */
function runOn(client: Redis, lua: string) {
  const hash = createHash('sha1').update(lua).digest('hex');
  const senders = new WeakSet<object>();
  const commandOf = (sent: CommandArgument[], isUnknown = false): Command => {
    const command = hiddenCommand(client, 'evalsha', sent, [hash, sent[1]!, HIDDEN]);
    command.toWritable = (socket) => {
      const isKnown = !isUnknown && senders.has(socket);
      senders.add(socket);
      command.name = isKnown ? 'evalsha' : 'eval';
      sent[0] = isKnown ? hash : lua;
      // Those who trace learn from the text what a hash means.
      command.args[0] = sent[0];
      return encodedCommand(command.name, sent);
    };
    return command;
  };
  return (keys: readonly string[], args: readonly CommandArgument[]): Promise<unknown> => {
    const sent: CommandArgument[] = [hash, keys.length];
    for (const list of [keys, args]) for (const each of list) sent.push(each);
    return (client.sendCommand(commandOf(sent)) as Promise<unknown>).catch((error: unknown) => {
      if (!isReply(error, 'NOSCRIPT')) throw error;
      return client.sendCommand(commandOf(sent, true));
    });
  };
}

/** The text of each `.lua` file, named like `library/clock`. */
export type ScriptSources = Readonly<Record<string, string>>;

const INCLUDE = /^( *)-- include: (.+)$/gm;

/**
 * Each `-- include:` line becomes the library files that it names, and those that they need: at the margin once, else
 * inside its block, because a call pays for each function that it creates.
 */
export function loadScript(sources: ScriptSources, name: string): string {
  return withIncludes(sources, sourceOf(sources, name), new Set());
}

function withIncludes(sources: ScriptSources, source: string, known: Set<string>): string {
  return source.replace(INCLUDE, (_, margin: string, names: string) => {
    const here = margin === '' ? known : new Set(known);
    const texts = names.split(', ').map((name) => libraryText(sources, name, here));
    return texts.filter((text) => text !== '').join('\n');
  });
}

function libraryText(sources: ScriptSources, name: string, known: Set<string>): string {
  if (known.has(name)) return '';
  known.add(name);
  return withIncludes(sources, sourceOf(sources, `library/${name}`), known);
}

function sourceOf(sources: ScriptSources, name: string): string {
  const source = sources[name];
  if (source === undefined) throw new Error(`There is no Redis script ${JSON.stringify(name)}`);
  return source;
}
