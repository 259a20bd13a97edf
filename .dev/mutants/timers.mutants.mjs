// Mistakes in how timers outside of Redis are told of sessions, and in what becomes of their questions.
const timed = (title) => ({ spec: 'timed-sessions.spec.ts', test: `with a timer and 1 partitions ${title}` });
const byContract = (timer, title) => ({ spec: 'session-timer.contract.spec.ts', test: `${timer} ${title}` });

const ONCE_DUE = 'asks about a session once its time has come, and never again when nobody needs to';

export const timers = [
  {
    mistake: 'A timer is not told of a session whose id has changed',
    in: 'ScheduledEnds.#heed',
    code: 'return this.#schedule(timer, newId)',
    instead: 'return this.#schedule(timer, id)',
    killedBy: timed('schedules a session anew when its id or its timeouts change, and cancels what was'),
  },
  {
    mistake: 'A timer is told of each renewal of a session',
    in: 'ScheduledEnds.#heed',
    code: 'if (newId === id && maxInactiveInterval === undefined && absoluteTimeout === undefined) return;',
    instead: '',
    killedBy: timed('schedules a new session for its end, and nothing when the session is read or renewed'),
  },
  {
    mistake: 'A timer waits for weeks about a session',
    in: 'ScheduledEnds.delayOf',
    code: 'Math.min(left + SLACK, LONGEST_DELAY)',
    instead: 'left + SLACK',
    killedBy: timed('schedules a session that lasts for weeks for the next day, and none that never ends'),
  },
  {
    mistake: 'A timer that throws fails the request',
    in: 'ScheduledEnds.#settle',
    code: 'this.#failures.failed(error);',
    instead: 'throw error;',
    killedBy: timed('serves requests while the timer fails or does not answer, and logs that once'),
  },
  {
    mistake: 'A timer is not told when to ask again about a session that is alive',
    in: 'TimedSessionListener.#answer',
    code: "outcome === 'alive' ? await this.ends.delayOf(id) : undefined",
    instead: 'undefined',
    killedBy: timed(
      'ends nothing early: it answers when to ask again, and one of two who ask at once that nobody needs to',
    ),
  },
  {
    mistake: 'Two jobs of a timer for one session both go on for ever',
    in: 'TimedSessionListener.#ask',
    code: 'if (open?.isAwaited) return undefined;',
    instead: '',
    killedBy: timed(
      'ends nothing early: it answers when to ask again, and one of two who ask at once that nobody needs to',
    ),
  },
  {
    mistake: 'Each question of a timer is a call of the script',
    in: 'TimedSessionListener.#claim',
    code: 'if (batch.ids.length >= this.#options.batchSize) claims.next = undefined;',
    instead: 'claims.next = undefined;',
    killedBy: timed('claims many sessions with few calls'),
  },
  {
    mistake: 'A timer may ask Redis about keys that are no sessions',
    in: 'TimedSessionListener.#ask',
    code: '!isWellFormedIdOrToken(id)',
    instead: 'false',
    killedBy: timed('ignores ids that no session has, and warns once of those that none can have'),
  },
  {
    mistake: 'A job of beanstalkd stays although nobody needs to ask again',
    in: 'BeanstalkdSessionTimer.#finish',
    code: 'if (delay === undefined) await connection.delete(job); else await connection.release(job, seconds(delay));',
    instead: 'await connection.release(job, seconds(delay ?? 0));',
    killedBy: byContract('BeanstalkdSessionTimer', ONCE_DUE),
  },
  {
    mistake: 'A job of beanstalkd is deleted although Redis did not reply',
    in: 'BeanstalkdSessionTimer.#finish',
    code: 'ask(text).catch(() => RETRY)',
    instead: 'ask(text).catch(() => undefined)',
    killedBy: byContract('BeanstalkdSessionTimer', 'asks again some seconds later when there is no answer'),
  },
  {
    mistake: 'Calls on a lost connection to beanstalkd wait for ever',
    in: 'BeanstalkdConnection.#lose',
    code: 'for (const { fail } of this.#calls) fail(this.#loss);',
    instead: '',
    killedBy: byContract(
      'BeanstalkdSessionTimer',
      'refuses to schedule while its server is away, and works again when that is back',
    ),
  },
  {
    mistake: 'Calls of BullMQ wait until its Redis is back',
    in: 'BullMqSessionTimer.start',
    code: '{ enableOfflineQueue: false, maxRetriesPerRequest: 1 }',
    instead: '{ maxRetriesPerRequest: null }',
    killedBy: byContract(
      'BullMqSessionTimer',
      'refuses to schedule while its server is away, and works again when that is back',
    ),
  },
  {
    mistake: 'A job of BullMQ ends although the session is alive',
    in: 'BullMqSessionTimer.#process',
    code: 'if (delay === undefined) return;',
    instead: 'return;',
    killedBy: byContract('BullMqSessionTimer', 'asks again when the answer says'),
  },
  {
    mistake: 'A BeanstalkdSessionTimer cancels a job by its number on a former connection',
    in: 'BeanstalkdSessionTimer.#serve',
    code: 'this.#jobs.clear();',
    instead: '',
    killedBy: byContract(
      'BeanstalkdSessionTimer',
      'refuses to schedule while its server is away, and works again when that is back',
    ),
  },
];
