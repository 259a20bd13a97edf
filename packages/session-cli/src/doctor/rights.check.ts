import type { Redis } from 'ioredis';
import { isAnswer, isReply } from '@nest-session/redis-events/internal';
import type { OpenStore } from '../command/store-access.js';
import { ruleNameOf, RIGHTS, RIGHTS_OF_HANDLERS, RIGHTS_WITH_PARTITIONS } from '../rights/tried-commands.js';
import { type Check, type Diagnosis, error, ofStore, ok, seePage } from './diagnosis.js';

const WRITES = ['hset', 'sadd', 'set', 'xadd', 'zadd', 'unlink'];

/** Whether a user of Redis may send what an application sends. Each command is such that it changes nothing. */
export const RIGHTS_CHECK: Check = ofStore(async (store, { call }) => {
  const user = call.values['acl-user'];
  const commands = await commandsFor(store);
  if (user !== undefined) return [await dryRun(store, user, commands)];
  const denied = await deniedAmong(store, commands, (client, words) => client.call(words[0]!, ...words.slice(1)));
  if (WRITES.every((write) => denied.includes(write)))
    return [ok('This user may only read. Give --acl-user <name> to check the rights of the application')];
  return [findingOf('This user', denied)];
});

async function commandsFor({ connection, partitions }: OpenStore): Promise<readonly string[]> {
  const { handlers, prefix } = partitions.all[0]!;
  const groups = await connection.run((client) => client.exists(handlers), prefix);
  const ofHandlers = groups > 0 ? RIGHTS_OF_HANDLERS : [];
  return [...RIGHTS, ...ofHandlers, ...(partitions.count > 1 ? RIGHTS_WITH_PARTITIONS : [])];
}

/** Asks Redis what another user may do: this one needs the right to ACL. */
async function dryRun(store: OpenStore, user: string, commands: readonly string[]): Promise<Diagnosis> {
  const ask = (client: Redis, words: readonly string[]) => client.call('ACL', 'DRYRUN', user, ...words);
  try {
    await store.connection.run((client) => ask(client, ['time']));
  } catch (problem) {
    return error(
      `The rights of user ${JSON.stringify(user)} cannot be read: ${(problem as Error).message}`,
      'Run this as a user who may use ACL DRYRUN, and check the name.',
    );
  }
  const denied = await deniedAmong(store, commands, async (client, words) => {
    const reply = String(await ask(client, words));
    if (reply !== 'OK') throw new Error(`NOPERM ${reply}`);
  });
  return findingOf(`User ${JSON.stringify(user)}`, denied);
}

function findingOf(who: string, denied: readonly string[]): Diagnosis {
  if (denied.length === 0)
    return ok(`${who} may send all commands of an application. Its subscriptions were not tried`);
  const message = `${who} may not send ${denied.map((name) => name.toUpperCase().replace('|', ' ')).join(', ')}, or not for these keys`;
  return error(message, `Grant the rights. ${seePage('Securing Redis')}`);
}

// Redis compares the rights before the arguments, so any other error says that a command is allowed.
async function deniedAmong(
  { connection, partitions }: OpenStore,
  commands: readonly string[],
  send: (client: Redis, words: readonly string[]) => Promise<unknown>,
): Promise<string[]> {
  const { prefix } = partitions.all[0]!;
  const denied: string[] = [];
  for (const command of commands) {
    const words = command.split(' ').map((word) => wordOf(word, `${prefix}doctor`, partitions.meta));
    const problemOf = (client: Redis) =>
      send(client, words).then(
        () => undefined,
        (problem: unknown) => problem,
      );
    const problem = await connection.run(problemOf, command.includes('<meta>') ? partitions.meta : prefix);
    if (isReply(problem, 'NOPERM')) denied.push(ruleNameOf(command));
    else if (problem !== undefined && !isAnswer(problem)) throw problem;
  }
  return denied;
}

function wordOf(word: string, key: string, meta: string): string {
  if (word === '<meta>') return meta;
  return word.startsWith('<key>') ? key + word.slice('<key>'.length) : word;
}
