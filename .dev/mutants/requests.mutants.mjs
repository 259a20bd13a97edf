// Mistakes in what a request does with its session, whatever store there is.
const byContract = (test) => ({ spec: 'map-session.repository.spec.ts', test });
const byRequests = (test) => ({ spec: 'session-http.spec.ts', test });

export const requests = [
  {
    mistake: 'An id that nobody has is adopted from the client that presents it',
    in: 'TrackedSession',
    code: 'const { id, token } = writer.drawKey();',
    instead: `const { id: drawn, token } = writer.drawKey();
    const [id = drawn] = presentedIds;`,
    killedBy: byContract('creation accepts a client that presents an unknown id, or that of an ended session'),
  },
  {
    mistake: 'The id after one whose creation was not answered is drawn without regard to that',
    in: 'SessionSaver.rotate',
    code: 'drawKey(state.storedId ?? this.#unanswered?.id)',
    instead: 'drawKey(state.storedId)',
    killedBy: {
      spec: 'tracked-session.spec.ts',
      test: 'draws an id that may replace the stored one, also after a save without a reply',
    },
  },
  {
    mistake: 'All attributes that were read are written back',
    in: 'TrackedAttributes',
    code: 'if (!entry.assigned) return this.#changeInPlace(name, entry);',
    instead: 'if (!entry.assigned) return this.#stored.encode(name, entry.value);',
    killedBy: byContract('saving writes only the changes, so that two concurrent requests lose none of them'),
  },
  {
    mistake: 'A value that was read is compared with the text that was stored',
    in: 'TrackedAttributes',
    code: 'text: this.#textAsRead(name, value) }',
    instead: 'text: this.#stored.text(name) }',
    killedBy: {
      spec: 'tracked-session.spec.ts',
      test: 'writes no text that another language formatted differently, until its value is changed',
    },
  },
  {
    mistake: 'The head of an answer leaves before the save is done',
    in: 'ResponseCommit',
    code: 'if (this.needsSave) return this.save();',
    instead: 'if (this.needsSave) void this.save().catch(() => undefined);',
    killedBy: byRequests('is finished before the headers are sent: res'),
  },
  {
    mistake: 'The cookie is sent of a session that is not stored',
    in: 'TrackedSession',
    code: 'ended === undefined && storedId === id ?',
    instead: 'ended === undefined ?',
    killedBy: byRequests('the cookie is left unchanged when its session is unknown, until a new session replaces it'),
  },
  {
    mistake: 'An answer is as if a save that failed had been done',
    in: 'ResponseCommit',
    code: 'if (error instanceof SessionStoreError) failures.failed(error); throw error;',
    instead: 'if (error instanceof SessionStoreError) failures.failed(error);',
    killedBy: byRequests('the save responds with 503 and without a cookie when it fails: value'),
  },
  {
    mistake: 'A request whose session has gone expires the cookie',
    in: 'TrackedSession',
    code: "return this.#state.ended === 'deleted';",
    instead: 'return this.#state.ended !== undefined;',
    killedBy: byRequests('the cookie is not changed by a slow request in flight during logout'),
  },
  {
    mistake: 'A request that was held open across a login sends the cookie of before again',
    in: 'ResponseCommit',
    code: "=== 'touched'",
    instead: "!== 'gone'",
    killedBy: {
      spec: 'rolling-cookie.spec.ts',
      test: 'is not sent again by a request that reads and was held open across a login',
    },
  },
];
