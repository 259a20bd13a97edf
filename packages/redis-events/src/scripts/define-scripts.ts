import { createHash } from 'node:crypto';
import type { Command, Redis } from 'ioredis';
import { type CommandArgument, encodedCommand, HIDDEN, hiddenCommand } from '../connection/own-commands.js';
import { isReply } from '../connection/server-faults.js';

type ArgumentOrList = CommandArgument | readonly CommandArgument[];

/** Runs a script. A list that is at hand need not be copied. */
type RunScript = (numberOfKeys: number, ...keysAndArguments: ArgumentOrList[]) => Promise<unknown>;

export type ScriptsByName<Name extends string> = Readonly<Record<Name, RunScript>>;

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

export function loadScripts<Name extends string>(
  sources: ScriptSources,
  family: string,
  files: Readonly<Record<Name, string>>,
): Record<Name, string> {
  const texts = Object.entries<string>(files).map(([name, file]) => [name, loadScript(sources, `${family}/${file}`)]);
  return Object.fromEntries(texts) as Record<Name, string>;
}

export function defineScripts<Name extends string>(
  client: Redis,
  sources: Readonly<Record<Name, string>>,
): ScriptsByName<Name> {
  const functions = Object.entries<string>(sources).map(([name, lua]) => [name, runOn(client, lua)]);
  return Object.fromEntries(functions) as ScriptsByName<Name>;
}

/**
 * The function that runs a script on a connection. Each socket sends the text once, and then its hash, by which Redis
 * knows it: no call needs a second round trip. Where Redis has forgotten it, the call sends the text after all.
 */
function runOn(client: Redis, lua: string): RunScript {
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
  return (...args) => {
    const sent: CommandArgument[] = [hash];
    for (const each of args) {
      if (typeof each !== 'object' || Buffer.isBuffer(each)) sent.push(each);
      else for (const one of each) sent.push(one);
    }
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
 * A script out of the sources of its package and of those below it. Each `-- include:` line is replaced by the library
 * files that it names, and by those that they need. What is included at the margin is there from then on, once. A call
 * pays for each function that it creates, so functions for rare cases are included inside the block of that case.
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
