const BY_CLAIM = 'handled as the cleanup handles it: an event, or a dead letter, tells of it';

/** By the words that the scripts reply: what breaks a rule of the data model, and what becomes of it by `--repair`. */
export const RULES = {
  'wrong-type': {
    problem: 'a key of another type stands in the place of one of ours',
    mending: 'renamed to `stray:...`, and kept for 30 days',
  },
  'unexpected-expiry': { problem: 'a key would go that must stay', mending: 'stays' },
  'missing-expiry': { problem: 'a key stays for ever that must go', mending: 'goes after its usual time' },
  'session-misplaced': {
    problem: 'a session is in another partition than its id says, where no request finds it',
    mending: 'the session ends, with an event; a copy of one that is where its id says is removed without an event',
  },
  'session-unreadable': {
    problem: 'a session hash does not say when the session began, was used last, or ends',
    mending: 'the session ends, with an event',
  },
  'session-never-ends': { problem: 'a session with a timeout has no end', mending: 'ends when its timeouts say' },
  'session-hash-expiry': {
    problem: 'a session hash goes before its session, or never',
    mending: 'goes the grace period after the session',
  },
  'end-not-scheduled': { problem: 'nothing notices the end of a session', mending: 'put into a bucket' },
  'end-scheduled-late': { problem: 'the end of a session is noticed late', mending: 'put into the right bucket' },
  'index-entry-missing': { problem: 'an index lacks a session of its value', mending: 'added to the index' },
  'ended-session-alive': {
    problem: 'a session that has ended still has a shadow key',
    mending: 'the shadow key is removed',
  },
  'ended-session-stays': { problem: 'the data of a session that has ended never go', mending: 'go after an hour' },
  'shadow-without-session': { problem: 'a shadow key has no session', mending: 'removed' },
  'bucket-not-listed': { problem: 'nobody looks into a bucket', mending: 'added to the bucket list' },
  'end-overdue': { problem: 'an end was due over 5 minutes ago, and nobody has noticed', mending: BY_CLAIM },
  'stray-member': { problem: 'a member of a bucket is none of ours', mending: BY_CLAIM },
  'member-without-session': { problem: 'a member of a bucket has no session', mending: BY_CLAIM },
  'member-of-ended-session': { problem: 'a session that has ended is still in a bucket', mending: 'removed' },
  'member-twice': { problem: 'a session stands in two places', mending: 'stands where it says' },
  'minute-without-bucket': { problem: 'a minute of the bucket list has no bucket', mending: 'removed' },
  'minute-misplaced': { problem: 'the bucket list has a minute under another time', mending: 'has it under its own' },
  'index-entry-without-session': { problem: 'an index lists a session that is not there', mending: 'removed' },
  'index-entry-unrecorded': { problem: 'an index lists a session of another value', mending: 'removed' },
  'pending-without-event': { problem: 'a group waits for an event that is gone', mending: 'forgotten' },
  'retry-not-scheduled': { problem: 'nothing tries an event again that failed', mending: 'tried at once' },
  'failure-without-event': { problem: 'a failure is recorded of an event that is handled', mending: 'forgotten' },
  'letter-unrecorded': { problem: 'a dead letter is in no record', mending: 'recorded' },
  'letter-record-without-letter': { problem: 'a record of a dead letter has no letter', mending: 'removed' },
  'letter-bytes': { problem: 'the recorded bytes of dead letters do not add up', mending: 'added up' },
  'deadline-misplaced': {
    problem: 'a deadline is in another partition than its key says, where nothing cancels it',
    mending: 'moved; removed if another one waits there under its key',
  },
  'deadline-expires': { problem: 'a deadline would go before it is due', mending: 'stays' },
  'deadline-not-scheduled': { problem: 'a deadline does not fire at its time', mending: 'fires at its time' },
  'fired-deadline-stays': {
    problem: 'the trace of a deadline that has fired never goes',
    mending: 'goes after an hour',
  },
  'due-without-deadline': { problem: 'the data of a deadline are lost', mending: 'a dead letter tells of it' },
  'name-not-scheduled': { problem: 'nobody looks at a name of deadlines in time', mending: 'looked at in time' },
} as const satisfies Readonly<Record<string, { readonly problem: string; readonly mending: string }>>;

export type Rule = keyof typeof RULES;
