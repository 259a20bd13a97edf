// Mistakes in what a request does with its session, whatever store there is.
const SESSION = 'packages/session-core/src/session';
const HTTP = 'packages/session-core/src/http';
const TESTS = 'packages/session-core/test';

const byContract = (test) => ({ file: `${TESTS}/repository/map-session.repository.spec.ts`, test });
const byRequests = (test) => ({ file: `${TESTS}/http/session-http.spec.ts`, test });

export const requests = [
  {
    mistake: 'An id that nobody has is adopted from the client that presents it',
    file: `${SESSION}/tracked-session.ts`,
    code: '    const key = writer.drawKey();\n',
    instead: `    const key = writer.drawKey();
    const [presentedId] = presentedIds;
    if (presentedId !== undefined) Object.assign(key, { id: presentedId });
`,
    killedBy: byContract('creation accepts a client that presents an unknown id, or that of an ended session'),
  },
  {
    mistake: 'The id after one whose creation was not answered is drawn without regard to that',
    file: `${SESSION}/tracked-session.ts`,
    code: 'drawKey(this.#storedId ?? this.#unanswered?.id)',
    instead: 'drawKey(this.#storedId)',
    killedBy: {
      file: `${TESTS}/session/tracked-session.spec.ts`,
      test: 'draws an id that goes with the one in the store, also with one that the store may know without having said so',
    },
  },
  {
    mistake: 'All attributes that were read are written back',
    file: `${SESSION}/tracked-attributes.ts`,
    code: 'if (!entry.assigned) return this.#changeInPlace(name, entry);',
    instead: 'if (!entry.assigned) return this.#stored.encode(name, entry.value);',
    killedBy: byContract('saving writes only the changes, so that two concurrent requests lose none of them'),
  },
  {
    mistake: 'A value that was read is compared with the text that was stored',
    file: `${SESSION}/tracked-attributes.ts`,
    code: 'text: this.#textAsRead(name, value) }',
    instead: 'text: this.#stored.text(name) }',
    killedBy: {
      file: `${TESTS}/session/tracked-session.spec.ts`,
      test: 'writes nothing of a text that another language wrote differently, as long as nobody changes the value',
    },
  },
  {
    mistake: 'The head of an answer leaves before the save is done',
    file: `${HTTP}/session-request.ts`,
    code: 'if (this.needsCommit) return this.commit();',
    instead: 'if (this.needsCommit) void this.commit().catch(() => undefined);',
    killedBy: byRequests('is done before the head leaves: res'),
  },
  {
    mistake: 'The cookie is sent of a session that is not stored',
    file: `${SESSION}/tracked-session.ts`,
    code: 'this.#ended === undefined && this.#storedId === this.#id;',
    instead: 'this.#ended === undefined;',
    killedBy: byRequests('the cookie is left alone by an unknown session'),
  },
  {
    mistake: 'An answer is as if a save that failed had been done',
    file: `${HTTP}/session-request.ts`,
    code: '      if (error instanceof SessionStoreError) this.#failures.failed(error);\n      throw error;\n',
    instead: '      if (error instanceof SessionStoreError) this.#failures.failed(error);\n',
    killedBy: byRequests('the save that fails is a 5xx without a cookie: value'),
  },
  {
    mistake: 'A request whose session has gone expires the cookie',
    file: `${SESSION}/tracked-session.ts`,
    code: "return this.#ended === 'deleted';",
    instead: 'return this.#ended !== undefined;',
    killedBy: byRequests('the cookie is not touched by a slow request in flight during logout'),
  },
  {
    mistake: 'A request that was held open across a login sends the cookie of before again',
    file: `${HTTP}/session-request.ts`,
    code: "this.#isRenewed = (await this.recordAccess()) === 'touched';",
    instead: "this.#isRenewed = (await this.recordAccess()) !== 'gone';",
    killedBy: {
      file: `${TESTS}/http/rolling-cookie.spec.ts`,
      test: 'is not sent again by a request that reads and was held open across a login',
    },
  },
];
