import { readFileSync } from 'node:fs';

const DOCUMENT = new URL('../../../../docs/securing-redis.md', import.meta.url);

/** The blocks of docs/securing-redis.md. */
export type RightsName =
  | 'every process'
  | 'handlers'
  | 'broadcast handlers'
  | 'groups'
  | 'partitions'
  | 'cluster'
  | 'deadlines'
  | 'notifications'
  | 'flags'
  | 'all keys'
  | 'database'
  | 'repartitioning'
  | 'replicas'
  | 'rotation'
  | 'rotation end'
  | 'verification'
  | 'takeover'
  | 'bullmq'
  | 'reading commands'
  | 'spring'
  | 'spring renewal'
  | 'spring shared';

/** The lines that the documentation asks operators to enter, each as the rules that it adds to a user. */
export function documentedLines(names: readonly RightsName[]): string[][] {
  const blocks = new Map(
    [...readFileSync(DOCUMENT, 'utf8').matchAll(/```text acl ([a-z ]+)\n([^`]+)```/g)].map(([, name, block]) => [
      name!,
      block!,
    ]),
  );
  return names.flatMap((name) =>
    [...blocks.get(name)!.matchAll(/^ACL SETUSER \w+ (.+)$/gm)].map(([, rules]) => argumentsOf(rules!)),
  );
}

/** The commands among them: `hset`, `config|get`. */
export function documentedCommands(names: readonly RightsName[]): string[] {
  const rules = documentedLines(names).flat();
  return rules.filter((rule) => rule.startsWith('+')).map((rule) => rule.slice(1));
}

/** As redis-cli reads them: a rule in quotes is one argument. */
function argumentsOf(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!);
}
