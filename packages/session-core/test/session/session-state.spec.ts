import { INITIALIZED_ATTRIBUTE, PRINCIPAL_ATTRIBUTE } from '../../src/session/attribute-names.js';
import { keptAttributes } from '../../src/session/kept-attributes.js';
import { UNBOUNDED } from '../support/unbounded.js';
import type { UpdateSession, WriteReply } from '../../src/session/session-change.js';
import {
  begunAnew,
  type CreatedSession,
  mayBeginAnew,
  nextSave,
  sent,
  type SentSave,
  type SessionSave,
  type SessionState,
  settle,
  settlePresented,
  SIGNED_OUT,
  stateOf,
  withStored,
} from '../../src/session/session-state.js';
import type { SessionBinding } from '../../src/session/session-response.js';
import { generateSessionKey } from '../../src/session/session-token.js';
import { StoredAttributes, TrackedAttributes } from '../../src/session/tracked-attributes.js';
import { RecordingWriter } from '../support/recording.writer.js';

const writer = new RecordingWriter();
const TIMES = { creationTime: 1000, lastAccessedTime: 2000, timeToLive: 1_800_000 };
const TIMEOUTS = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
const ALICE = { [PRINCIPAL_ATTRIBUTE]: '"alice"' };
const CREATED: CreatedSession = { token: generateSessionKey().token, presentedIds: ['presented'] };
const SIGN_IN = { kept: keptAttributes(undefined, []), at: 5000 };

interface Session {
  state: SessionState;
  attributes: TrackedAttributes;
}

/** A session `id` with these texts, and these changes of its state; a new one with `created`. */
function session(
  texts: Record<string, string>,
  changes: Partial<SessionState> = {},
  created?: CreatedSession,
): Session {
  const stored = new StoredAttributes(Object.entries(texts), writer.serializer, writer.warnings, () => 'id');
  const attributes = new TrackedAttributes(stored, {
    isNew: created !== undefined,
    bounds: UNBOUNDED,
    reached: () => undefined,
  });
  const record = { id: 'id', ...TIMES, ...TIMEOUTS, attributes: [] };
  const state = stateOf(record, stored.has(PRINCIPAL_ATTRIBUTE), created);
  return { state: frozen({ ...state, ...changes }), attributes };
}

/** A pure function changes nothing that it is given. */
function frozen(state: SessionState): SessionState {
  Object.freeze(state.stored);
  return Object.freeze(state);
}

function next({ state, attributes }: Session, binding: SessionBinding = {}): SessionSave | undefined {
  return nextSave(state, attributes, binding, writer);
}

/** The next save, sent. */
function send(from: Session): SentSave {
  const save = next(from)!;
  if (save.kind !== 'delete') from.attributes.sent(save.attributes);
  return { save, from: from.state };
}

function reply({ state, attributes }: Session, to: SentSave, answer: WriteReply) {
  return settle(frozen(sent(state, to.save)), to, answer, attributes);
}

describe('nextSave()', () => {
  it('asks for nothing where nothing has changed, or the session has ended', () => {
    expect(next(session({ a: '1' }))).toBeUndefined();
    for (const ended of ['gone', 'rotated', 'deleted'] as const) {
      const over = session({}, withStored(session({}).state, { ended }));
      over.attributes.set('a', 1);
      expect(next(over)).toBeUndefined();
    }
  });

  it('asks for what has changed, the same each time, and for no more', () => {
    const changed = session({ a: '1', b: '{"n":1}', c: '1' });
    changed.attributes.set('a', 2);
    (changed.attributes.get('b') as { n: number }).n = 2;
    changed.attributes.set('c', undefined);
    const first = next(changed);
    expect(first).toMatchObject({ kind: 'update', id: 'id', newId: undefined, maxInactiveInterval: undefined });
    expect((first as UpdateSession).attributes).toEqual(
      new Map([
        ['a', '2'],
        ['b', '{"n":2}'],
        ['c', null],
      ]),
    );
    expect(next(changed)).toEqual(first);
  });

  it('asks for an end with its reason, also of a session that another request has rotated, and for none of a new one', () => {
    const deletion = 'signed-out';
    expect(next(session({}, { deletion }))).toEqual({ kind: 'delete', id: 'id', reason: deletion });
    const rotated = session({}, { ...withStored(session({}).state, { ended: 'rotated' }), deletion });
    expect(next(rotated)).toEqual({ kind: 'delete', id: 'id', reason: deletion });
    const created = session({}, { deletion }, CREATED);
    created.attributes.set('a', 1);
    expect(next(created)).toBeUndefined();
  });

  it.each<[string, Partial<SessionState>, object]>([
    ['a rotation', { id: 'other' }, { newId: 'other' }],
    ['a rotation that shuts others out', { id: 'other', closes: true }, { newId: 'other', closes: true }],
    ['a clearance', { id: 'other', clears: true }, { newId: 'other', clears: true }],
    ['no closing without a new id', { closes: true, clears: true, keepsIdle: true }, { newId: undefined }],
    ['a sign-in, with both timeouts', { id: 'other', authentication: SIGN_IN }, { signIn: SIGN_IN.kept, ...TIMEOUTS }],
    ['the end of a sign-in', { id: 'other', authentication: SIGNED_OUT }, { signsOut: true }],
    ['one timeout', { timeouts: { ...TIMEOUTS, absoluteTimeout: 60 } }, { absoluteTimeout: 60 }],
    ['an end, by either timeout', { timeouts: { ...TIMEOUTS, absoluteTimeout: 0 } }, { maxInactiveInterval: 0 }],
    ['no renewal', { keepsIdle: true }, { keepsIdle: true }],
    ['no renewal of what was just renewed', { isFreshUntil: Infinity }, { keepsIdle: true }],
  ])('asks for %s', (_, changes, expected) => {
    const changed = session({}, changes);
    changed.attributes.set('a', 1);
    expect(next(changed)).toMatchObject({ kind: 'update', id: 'id', ...expected });
  });

  it('asks for a renewal with a sign-in, and with anything else than attributes in a fresh session', () => {
    const signedIn = session({}, { id: 'other', authentication: SIGN_IN, keepsIdle: true });
    expect(next(signedIn)).not.toHaveProperty('keepsIdle');
    expect(next(session({}, { id: 'other', isFreshUntil: Infinity }))).not.toHaveProperty('keepsIdle');
  });

  it('asks for a creation once there is an attribute, for which a sign-in is never late', () => {
    const created = session({}, {}, CREATED);
    expect(next(created)).toBeUndefined();
    created.attributes.set('a', 1);
    const visitor = next(created, { response: { headersSent: false, visitorToken: 'token' } });
    expect(visitor).toMatchObject({ kind: 'create', id: 'id', presentedIds: ['presented'], ...TIMEOUTS });
    expect(visitor).toHaveProperty(['attributes', 'size'], 2);
    const signedIn = { ...created, state: { ...created.state, authentication: SIGN_IN } };
    expect(next(signedIn)).toMatchObject({ kind: 'create', presentedIds: [], signsIn: true });
  });

  it('removes by name what a sign-in has left behind before another one took its place', () => {
    const signedIn = session({ a: '1', b: '1' }, { id: 'other', authentication: SIGN_IN });
    signedIn.attributes.leave((name) => name === 'a');
    expect((next(signedIn) as UpdateSession).attributes).toEqual(new Map([['a', null]]));
    const cleared = { ...signedIn, state: { ...signedIn.state, clears: true } };
    expect((next(cleared) as UpdateSession).attributes).toEqual(new Map());
  });
});

describe('settle()', () => {
  const rotation = (texts: Record<string, string> = {}, changes: Partial<SessionState> = {}) => {
    const rotated = session(texts, { id: 'other', ...changes });
    rotated.attributes.set('a', 1);
    return rotated;
  };

  it('has what was created, with the times and the memo of the store', () => {
    const created = session({}, { authentication: SIGN_IN }, CREATED);
    created.attributes.set('a', 1);
    const memo = {};
    const { state, outcome } = reply(created, send(created), { outcome: 'created', creationTime: 7000, memo });
    expect(outcome).toBe('saved');
    expect(state.stored).toMatchObject({ id: 'id', creationTime: 7000, lastAccessedTime: 7000, memo });
    expect(state).toMatchObject({ authentication: undefined, stored: { authenticatedAt: 7000 } });
  });

  it('has the new id, the timeouts, and the time of the sign-in, by its own clock where the reply was lost', () => {
    const signedIn = rotation({}, { authentication: SIGN_IN, timeouts: { ...TIMEOUTS, maxInactiveInterval: 60 } });
    const save = send(signedIn);
    const waiting = sent(signedIn.state, save.save);
    expect(waiting.stored.knownTimeouts).toEqual({ maxInactiveInterval: undefined, absoluteTimeout: undefined });
    const { state } = reply(signedIn, save, { outcome: 'saved', authenticatedAt: 9000 });
    expect(state.stored).toMatchObject({ id: 'other', authenticatedAt: 9000 });
    expect(state.stored.knownTimeouts).toEqual({ maxInactiveInterval: 60, absoluteTimeout: -1 });
    expect(reply(signedIn, save, { outcome: 'saved' }).state.stored.authenticatedAt).toBe(SIGN_IN.at);
  });

  it('keeps what the application has changed during the save', () => {
    const first = rotation({}, { authentication: SIGN_IN, clears: true, closes: true });
    first.attributes.leave(() => true);
    const save = send(first);
    const again = { ...SIGN_IN };
    first.attributes.leave(() => true);
    const changed = { ...first, state: frozen({ ...first.state, id: 'third', authentication: again }) };
    expect(reply(changed, save, { outcome: 'saved' }).state).toMatchObject({
      id: 'third',
      authentication: again,
      clears: true,
      closes: false,
      stored: { id: 'other' },
    });
    const done = rotation({}, { authentication: SIGN_IN, clears: true });
    done.attributes.leave(() => true);
    const { state } = reply(done, send(done), { outcome: 'saved' });
    expect(state).toMatchObject({ authentication: undefined, clears: false });
  });

  it('stays the session of its id when the store has made the changes under a later one', () => {
    const late = session({ a: '1' });
    late.attributes.set('a', 2);
    const { state, outcome } = reply(late, send(late), { outcome: 'forwarded' });
    expect([outcome, state.stored.id, state.stored.ended]).toEqual(['saved', 'id', undefined]);
  });

  it.each<[string, Partial<SessionState>]>([
    ['deletion', { deletion: 'invalidated' }],
    ['timeout of 0', { timeouts: { ...TIMEOUTS, maxInactiveInterval: 0 } }],
  ])('has ended by a %s, and only elsewhere when that was forwarded or came too late', (_, changes) => {
    const ended = session({}, changes);
    const save = send(ended);
    const stored = (answer: WriteReply) => {
      const { state, outcome, failure } = reply(ended, save, answer);
      return [outcome, state.stored.ended, state.stored.wasEnded, failure];
    };
    const answer = save.save.kind === 'delete' ? 'deleted' : 'saved';
    expect(stored({ outcome: answer })).toEqual(['saved', 'deleted', true, undefined]);
    expect(stored({ outcome: 'forwarded' })).toEqual(['gone', 'gone', true, undefined]);
    expect(stored({ outcome: 'gone' })).toEqual(['gone', 'gone', false, undefined]);
    expect(stored({ outcome: 'gone', rotated: true })).toEqual([
      'gone',
      'gone',
      false,
      expect.stringContaining('No session was ended'),
    ]);
  });

  it.each<[WriteReply, object]>([
    [{ outcome: 'refused' }, { limit: 'maxSessions' }],
    [{ outcome: 'full', bound: 'maxAttributes' }, { limit: 'maxAttributes' }],
    [{ outcome: 'revoked' }, { failure: expect.stringContaining('every session of the user was ended') }],
  ])('is as it was after the reply %j', (answer, expected) => {
    const signedIn = rotation({}, { authentication: SIGN_IN });
    const before = signedIn.state;
    const settlement = settle(before, send(signedIn), answer, signedIn.attributes);
    expect(settlement).toEqual({ state: before, ...expected });
    expect(settlement.state).toBe(before);
  });

  it('is gone, without an error, when it has only changed', () => {
    const changed = rotation();
    for (const answer of [{ outcome: 'gone' }, { outcome: 'conflict', current: undefined }] as const) {
      const { state, outcome, failure } = reply(changed, send(changed), answer);
      expect([state.stored.ended, outcome, failure]).toEqual(['gone', 'gone', undefined]);
    }
  });

  it.each<[string, Session, string]>([
    ['sign-in', rotation({}, { authentication: SIGN_IN }), 'Nobody was signed in'],
    ['sign-in of who was signed in', rotation(ALICE, { authentication: SIGN_IN }), 'Nobody was signed in'],
    ['session that starts anew', rotation({}, { clears: true }), 'No session was started anew'],
  ])('says once that a %s has failed', (_, begun, message) => {
    const { state, failure } = reply(begun, send(begun), { outcome: 'gone' });
    expect(failure).toContain(message);
    expect(state).toMatchObject({ authentication: undefined, clears: false, stored: { ended: 'gone' } });
  });

  it('takes over the CSRF token of a visitor, but not where the application begins anew', () => {
    const response = { response: { headersSent: false, visitorToken: 'token' } };
    const created = (changes: object) => {
      const begun = session({}, changes, CREATED);
      begun.attributes.set('a', 1);
      const save = next(begun, response)!;
      return save.kind === 'create' && [...save.attributes.keys()];
    };
    expect(created({})).toEqual(['a', 'nest-session.visitor.csrf']);
    expect(created({ clears: true })).toEqual(['a']);
  });

  it('says that a late creation has failed, unless the application had set nothing', () => {
    const created = session({}, {}, CREATED);
    created.attributes.set(INITIALIZED_ATTRIBUTE, true);
    expect(reply(created, send(created), { outcome: 'gone' }).failure).toBeUndefined();
    created.attributes.set('a', 1);
    expect(reply(created, send(created), { outcome: 'gone' }).failure).toContain('The session was not created');
  });

  it('begins anew what a visitor has begun in a session that another request has rotated, and nothing of a user', () => {
    const gone = { outcome: 'gone', rotated: true } as const;
    const visitor = rotation({ b: '1' }, { authentication: SIGN_IN });
    const { state, failure } = reply(visitor, send(visitor), gone);
    expect([failure, mayBeginAnew(state, visitor.attributes)]).toEqual([undefined, true]);
    const anew = { ...visitor, state: { ...begunAnew(state), id: 'third' } };
    expect(next(anew)).toMatchObject({ kind: 'create', id: 'third', presentedIds: [], signsIn: true });
    const user = rotation(ALICE, { authentication: SIGN_IN });
    const after = reply(user, send(user), gone);
    expect([after.failure, mayBeginAnew(after.state, user.attributes)]).toEqual([
      expect.stringContaining('Nobody was signed in'),
      false,
    ]);
  });

  it('has ended what its tokens opened, unless that had become the session of another user', () => {
    const { state } = session({}, { deletion: 'signed-out' }, CREATED);
    const ended = settlePresented(state, [{ outcome: 'forwarded' }, { outcome: 'gone' }]);
    expect(ended).toMatchObject({ outcome: 'saved', state: { presentedIds: [], stored: { wasEnded: true } } });
    const late = settlePresented(state, [{ outcome: 'gone', rotated: true }]);
    expect(late).toMatchObject({
      failure: expect.stringContaining('No session was ended'),
      state: { presentedIds: [] },
    });
  });
});
