// Characters that mean something in a Redis pattern or as a hash tag, so a name with them could reach foreign keys.
const FORBIDDEN = /[{}*[\]?\\]/;

const MEMBER = 'expires:';

/** Why a namespace cannot be used, as the end of the sentence "Option `namespace` ..."; undefined when it can. */
export function namespaceProblem(namespace: string): string | undefined {
  if (namespace.trim() === '') return 'must not be empty';
  if (FORBIDDEN.test(namespace)) return 'must not contain { } * [ ] ? or \\';
  return undefined;
}

/**
 * Every key of one partition. The scripts derive from `prefix` the few that only Redis can know, such as the bucket of a
 * minute; `scripts/includes/keys.lua` is the only other place that spells key names.
 */
export class SessionKeys {
  /** What every key below begins with. */
  readonly prefix: string;
  /** ZSET of the minutes that have a set of sessions which may be due. */
  readonly bucketList: string;
  /** STREAM of what happened to sessions. */
  readonly events: string;
  /** STREAM of what nobody could handle. */
  readonly deadLetters: string;
  /** HASH: of each group, the names of the handlers that its instances have, as JSON. */
  readonly handlers: string;
  /** STRING: the position of the last event that was trimmed. */
  readonly trimmed: string;
  /** HASH: of each group, how many events were trimmed before it had handled them. */
  readonly dropped: string;

  /** `tag` is the hash tag of the partition; empty where there is but one. */
  constructor(namespace: string, tag = '') {
    this.prefix = tag === '' ? `${namespace}:` : `${namespace}:{${tag}}:`;
    this.bucketList = `${this.prefix}expirations`;
    this.events = `${this.prefix}events`;
    this.deadLetters = `${this.events}:dead`;
    this.handlers = `${this.events}:handlers`;
    this.trimmed = `${this.events}:trimmed`;
    this.dropped = `${this.events}:dropped`;
  }

  /** HASH: the session. */
  session(id: string): string {
    return `${this.prefix}sessions:${id}`;
  }

  /** STRING without content: exists exactly as long as the session is alive. */
  shadow(id: string): string {
    return `${this.prefix}sessions:expires:${id}`;
  }

  /** STRING, the forwarding mark: the id that a session has instead of this one, while saves are still forwarded. */
  forwardingMark(id: string): string {
    return `${this.prefix}sessions:moved:${id}`;
  }

  /** The member of a bucket that stands for a session. */
  memberOf(id: string): string {
    return `${MEMBER}${id}`;
  }

  /** The id that a member stands for; the member itself when it has another form. */
  idOfMember(member: string): string {
    return member.startsWith(MEMBER) ? member.slice(MEMBER.length) : member;
  }

  /** SET of the members (`expires:<id>`) that may be due in a minute. */
  bucket(minute: string): string {
    return `${this.prefix}expirations:${minute}`;
  }

  /** SET of the ids that an index lists under a value. */
  index(name: string, value: string): string {
    return `${this.prefix}index:${name}:${value}`;
  }

  /** HASH: by position, what a group has to remember of an event that has failed, as JSON. */
  failing(group: string): string {
    return `${this.events}:failing:${group}`;
  }

  /** ZSET of the positions that have failed in a group, each with the time when it is due again. */
  retries(group: string): string {
    return `${this.events}:retries:${group}`;
  }
}
