import { DEADLINE_SOURCES } from '@nest-session/deadlines/redis/internal';
import { defineScripts, loadScripts } from '@nest-session/redis-events/internal';
import { sourcesIn } from '@nest-session/redis/internal';
import type { Redis } from 'ioredis';
import type { Rule } from '../../verification/rules.js';
import { LUA_SOURCES } from '../lua-sources.js';

export interface Problem {
  readonly what: string;
  readonly rule: Rule;
}

const LETTERS_PER_CALL = 10;

const SCRIPTS = loadScripts({ ...sourcesIn('buckets'), ...DEADLINE_SOURCES, ...LUA_SOURCES }, 'verification');

type ScriptName = keyof typeof SCRIPTS;
type Arguments = readonly (string | number)[];

/** Each looks at a few things of one partition at one moment and, with `mends`, mends them at the same moment. */
export class VerificationScripts {
  readonly #words: (script: ScriptName, keys: readonly string[], args: Arguments) => Promise<string[]>;

  constructor(client: Redis, mends: boolean) {
    const run = defineScripts(client, SCRIPTS);
    this.#words = (script, keys, args) => run(script, keys, [mends ? 1 : 0, ...args]);
  }

  async find(script: ScriptName, keys: readonly string[], ...args: Arguments): Promise<Problem[]> {
    return toProblems(await this.#words(script, keys, args));
  }

  async *letters(deadLetters: string): AsyncIterable<Problem[]> {
    for (let after = '0-0'; after !== '';) {
      const [last = '', ...words] = await this.#words('verify-letters', [deadLetters], [after, LETTERS_PER_CALL]);
      yield toProblems(words);
      after = last;
    }
  }
}

function toProblems(words: readonly string[]): Problem[] {
  return words.flatMap((what, i) => (i % 2 === 0 ? [{ what, rule: words[i + 1] as Rule }] : []));
}
