/** What is wrong with the data of Spring Session, by a word for it. */
export type SpringRule =
  | 'bucket-member-without-session'
  | 'bucket-stays'
  | 'clock-differs'
  | 'expiration-without-session'
  | 'incomplete-session'
  | 'index-member-without-session'
  | 'mixed-serializers'
  | 'unreadable-member';

/** What each is, and what mends it, as sentences without a subject for a list. */
interface SpringRuleText {
  readonly problem: string;
  /** Undefined: only an application, or who runs it, can. */
  readonly mending?: string;
}

export const SPRING_RULES: Readonly<Record<SpringRule, SpringRuleText>> = {
  'bucket-member-without-session': {
    problem: 'a bucket whose minute is over names a session that has ended',
    mending: 'removed from the bucket',
  },
  'bucket-stays': {
    problem: 'a bucket whose minute is over has no time to live, and Spring does not look at it again',
    mending: 'expires in five minutes',
  },
  'clock-differs': {
    problem: 'the clock of an application of Spring is more than two seconds from that of Redis: let NTP set both',
  },
  'expiration-without-session': {
    problem: 'the sorted set of expirations names a session that is gone',
    mending: 'removed from the sorted set',
  },
  'incomplete-session': {
    problem: 'a session hash lacks one of its times, so every request with its cookie fails until it has expired',
    mending: 'removed, with its shadow key',
  },
  'index-member-without-session': {
    problem: 'an index names a session that is gone, and index sets never expire',
    mending: 'removed from the index',
  },
  'mixed-serializers': {
    problem: 'some values are of JDK serialization and some are JSON, so some application fails at some sessions',
  },
  'unreadable-member': {
    problem: 'no serializer of Spring has written a member of an index or a bucket, so Spring fails at the whole set',
  },
};
