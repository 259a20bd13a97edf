import type { Redis } from 'ioredis';
import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { FORWARDING_TIME } from '@nest-session/core/internal';
import type {
  CreateReply,
  CreateSession,
  DeleteReply,
  DeleteSession,
  UpdateReply,
  UpdateSession,
} from '@nest-session/core/store';
import { defineScripts, loadScripts, type RunScript } from '@nest-session/redis-events/internal';
import {
  ageOf,
  ATTRIBUTE_FIELD,
  hashOfValue,
  howToLeave,
  pushChange,
  type ScriptReply,
  toCreateReply,
  toEndReply,
  toUpdateReply,
} from '@nest-session/redis/internal';
import type { SpringJson } from '../../values/spring-json.serializer.js';
import { SCRIPT_SOURCES } from '../spring/spring.scripts.js';
import type { SharedKeys } from '../../keys/spring-keys.js';

/** Our message has a blank where the form is not known: it tells other instances nothing of Spring's. */
export const OF_UNKNOWN_FORM = '{ ';

/** Spring has no limit that could refuse a session. */
type SharedCreateOutcome = 'created' | 'collision' | 'gone' | 'revoked';
type SharedUpdateOutcome = 'saved' | 'forwarded' | 'gone' | 'conflict' | 'collision' | 'full' | 'revoked';

export type LookOutcome = 'alive' | 'created' | 'id-changed' | 'claimed' | 'already' | 'unknown';

export interface Heard {
  readonly id: string;
  /** `was <id>`: it had that id. `over`: its shadow key is gone. `''`: something may have happened to it. */
  readonly what: '' | 'created' | 'over' | `was ${string}`;
  /** The id that it has by now. @default the same */
  readonly laterId?: string | undefined;
}

interface PrincipalChange {
  readonly before: string | undefined;
  /** Null: nobody; undefined: as before. */
  readonly after: string | null | undefined;
}

const FILES = loadScripts(SCRIPT_SOURCES, 'shared');
// Like every end, it runs when Redis is out of memory.
const ENDING = FILES['change-shared-session'].replace('#!lua', '#!lua flags=allow-oom');
const SCRIPTS = { ...FILES, 'end-changed-shared-session': ENDING };

/** The scripts that change sessions where Spring keeps them. Each call is one round trip. */
export class SharedScripts {
  readonly #run: RunScript<keyof typeof SCRIPTS>;

  constructor(
    client: Redis,
    private readonly keys: SharedKeys,
    private readonly traceparent?: () => string | undefined,
  ) {
    this.#run = defineScripts(client, SCRIPTS);
  }

  /** `form`: the JSON of Spring, in which it is told of the session. */
  async create(change: CreateSession, principal: string, form: SpringJson | undefined): Promise<CreateReply> {
    const { own, spring, createdChannel } = this.keys;
    const marks = [change.id, ...change.presentedIds].map((id) => own.forwardingMark(id));
    const keys = [own.events, spring.session(change.id), ...marks];
    const args = [...this.#where(), change.id, change.maxInactiveInterval, principal, change.signsIn ? 1 : 0];
    args.push(createdChannel, messageBegin(form), hashOfPrincipalIn(change), ageOf(change));
    for (const [name, text] of change.attributes) if (text !== null) args.push(ATTRIBUTE_FIELD + name, text);
    const reply = await this.#run<ScriptReply<SharedCreateOutcome>>('create-shared-session', keys, args);
    return toCreateReply(reply) as CreateReply;
  }

  async change(change: UpdateSession, { before, after }: PrincipalChange): Promise<UpdateReply> {
    const { id, newId } = change;
    const args = [...this.#where(), id, newId ?? '', howToLeave(change), FORWARDING_TIME];
    args.push(after === undefined ? '' : `=${after ?? ''}`, before ?? '', hashOfPrincipalIn(change));
    pushChange(args, change, undefined);
    const ends = change.maxInactiveInterval === 0;
    const script = ends ? 'end-changed-shared-session' : 'change-shared-session';
    const reply = await this.#run<ScriptReply<SharedUpdateOutcome>>(script, [this.keys.own.events], args);
    return (ends ? toEndReply(reply) : toUpdateReply(reply)) as UpdateReply;
  }

  async delete({ id, listed, reason = 'revoked' }: DeleteSession): Promise<DeleteReply> {
    const { own, spring } = this.keys;
    const keys = [own.events, ...(listed ? [spring.index(listed.value)] : [])];
    return this.#delete(keys, [id, reason, listed?.value ?? '', 0]);
  }

  /** Deletes a session of a principal, whether the index lists it or not. Its event has no data. */
  erase(id: string, principal: string): Promise<DeleteReply> {
    return this.#delete([this.keys.own.events], [id, 'revoked', principal, 1]);
  }

  // `named`: how those that were heard of stand, in their order; `due`: how `most` of those that are due do, by their
  // ids; `next`: milliseconds until the next one of our list is due, undefined when there is none.
  async lookAt(heard: readonly Heard[], most: number) {
    const { own, spring } = this.keys;
    const args = [spring.prefix, own.prefix, most];
    const named = heard.flatMap(({ id, what, laterId = id }) => [id, what, laterId]);
    type Reply = [next: number | '', ...words: string[]];
    const [next, ...words] = await this.#run<Reply>('look-at-shared-sessions', [own.events], [...args, ...named]);
    const rest = words.splice(heard.length);
    const due = new Map<string, LookOutcome>();
    for (let i = 0; i < rest.length; i += 2) due.set(rest[i]!, rest[i + 1] as LookOutcome);
    return { named: words as LookOutcome[], due, next: next === '' ? undefined : next };
  }

  async #delete(keys: string[], args: (string | number)[]): Promise<DeleteReply> {
    return toEndReply(await this.#run('delete-shared-session', keys, [...this.#where(), ...args])) as DeleteReply;
  }

  #where(): (string | number)[] {
    return [this.keys.spring.prefix, this.keys.own.prefix, this.traceparent?.() ?? ''];
  }
}

/** Whose revocation mark a change asks for; empty: it makes the session one of nobody. */
function hashOfPrincipalIn({ indexes }: Pick<UpdateSession, 'indexes'>): string {
  const principal = indexes.get(PRINCIPAL_NAME_INDEX_NAME);
  return principal ? hashOfValue(principal) : '';
}

/** Without a class, a serializer with classes does not read the message. */
function messageBegin(form: SpringJson | undefined): string {
  if (form === 'plain') return '{';
  return `${form ? '{' : OF_UNKNOWN_FORM}"@class":"java.util.HashMap",`;
}
