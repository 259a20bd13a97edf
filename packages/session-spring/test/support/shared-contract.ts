/**
 * The checks of the contract that use what Spring does not have: an absolute timeout, a session that never ends, an
 * index of the application, or a name of more than 256 bytes. Each must be refused by an error that says so. By group;
 * all of a group: `true`.
 */
export const REFUSED: Readonly<Record<string, true | readonly string[]>> = {
  'absolute timeout': true,
  'indexed attributes': true,
  creation: ['stores every attribute and time, for every node'],
  loading: [
    'returns times as whole numbers',
    'returns for how long a session has been idle, which decides when a touch is due',
  ],
  saving: [
    'renews a session when only its timeouts change',
    'writes attributes, timeouts and a new id in one step',
    'does not restore a deleted session',
    'does not restore an expired session before the expiry is noticed',
    'does not restore an expired session after the expiry is noticed',
  ],
  rotation: [
    'keeps attributes and times',
    'refuses completely a forwarded save that sets another id',
    'refuses completely a forwarded save that sets a principal',
    'refuses completely a forwarded save that sets no principal',
    'refuses completely a forwarded save that sets another interval',
    'refuses completely a forwarded save that sets a longer interval',
    'refuses completely a forwarded save that sets a shorter interval',
    'refuses completely a forwarded save that sets another absolute end',
    'refuses completely a forwarded save that sets a later absolute end',
  ],
  'a sign-in': [
    'sets both timeouts to those of the options, whatever other requests made of them',
    'lets the absolute timeout count from it',
    'is forgotten with its principal, and the session keeps its end',
  ],
  'idle timeout': [
    'never ends the session when it is negative, until it is set again',
    'can be negative from the creation, and stays so through saves and rotations',
    'can be any negative number',
    'can be as long as 2147483647 seconds',
  ],
  'attribute update': ['neither writes other changes nor renews the session on a conflict'],
  'bounds of a session': [
    "do not count the library's own attributes",
    'neither keep anybody from signing in, nor a session from ending',
  ],
  index: [
    'finds sessions with the same content as a lookup by id',
    'changes independently of the other indexes of a session',
    'keeps a session that is saved, touched and updated',
    'has no ended session, however it ended',
    'accepts every name, and finds sessions by exactly that name',
  ],
  listing: ['has the times of each session, the latest sign-in first'],
  events: [
    'record a deletion of each session when every session ends',
    'have all attributes, large ones too, and the times of the session',
    'record the end of a session whose id is drawn again before its expiry is noticed',
    'record the expiry of a session whose timeout was shortened',
    'record the expiry of a session that never expired before its timeout was set',
    'record an expiry when a save sets timeouts that have already passed',
    'record nothing but creations, rotations, sign-ins and ends',
  ],
  races: ['two changes of different timeouts both take effect'],
  'races between nodes': ['two changes of different timeouts both take effect'],
};

/** Checks of what the module refuses at the start, and of what Spring has another rule for. */
export const NOT_SHARED: Readonly<Record<string, true | readonly string[]>> = {
  // Option `maxSessions`.
  'a limit of sessions': true,
  'the events of a limit of sessions': true,
  // Option `devices`.
  listing: ['shows the device of the last change that has one'],
  events: ['record a sign-in, whatever the visitor had before, with who and which device'],
  // A session of Spring is alive until `lastAccessedTime` and its interval are over, so a step back of the clock
  // prolongs it.
  saving: ['counts from now when the clock has stepped back behind the last access'],
};
