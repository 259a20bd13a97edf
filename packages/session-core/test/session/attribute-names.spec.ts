import { cookieLifetimeOf } from '../../src/http/session-touch.js';
import { SessionAttributeError } from '../../src/index.js';
import {
  COOKIE_MAX_AGE_ATTRIBUTE,
  CSRF_ATTRIBUTE,
  INITIALIZED_ATTRIBUTE,
  REMEMBER_ME_ATTRIBUTE,
} from '../../src/session/attribute-names.js';
import { RecordingWriter } from '../support/recording.writer.js';

const restored = (attributes: Record<string, string> = {}) => new RecordingWriter().restore(attributes);

describe.each([CSRF_ATTRIBUTE, REMEMBER_ME_ATTRIBUTE, COOKIE_MAX_AGE_ATTRIBUTE, INITIALIZED_ATTRIBUTE])(
  '%s',
  (name) => {
    it('is not set by an application', async () => {
      const session = restored();
      expect(() => session.setAttribute(name, 1)).toThrow(SessionAttributeError);
      await expect(session.updateAttribute(name, () => 1)).rejects.toThrow(SessionAttributeError);
      expect(session.attributeNames).toEqual([]);
    });

    it('is removed by an application', () => {
      const session = restored({ [name]: '1' });
      session.removeAttribute(name);
      expect(session.attributeNames).toEqual([]);
    });
  },
);

describe.each([
  'SPRING_SECURITY_CONTEXT',
  'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME',
])('%s, by which Spring knows its user', (name) => {
  it('is neither set, assigned, updated nor removed by an application, which may read it', async () => {
    const session = restored({ [name]: '{"authentication":{}}' });
    const refused = `Session attribute ${JSON.stringify(name)} is how Spring knows its user: call signInAs(session, user)`;
    const expectRefused = (action: () => void) => expect(action).toThrow(refused);
    for (const value of [{ authentication: { principal: 'admin' } }, 'admin', undefined, null]) {
      expectRefused(() => session.setAttribute(name, value));
      expectRefused(() => session.assignAttribute(name, value));
    }
    expectRefused(() => session.removeAttribute(name));
    await expect(session.updateAttribute(name, () => 'admin')).rejects.toThrow(SessionAttributeError);
    expect([session.isDirty, session.getAttribute(name)]).toEqual([false, { authentication: {} }]);
  });
});

it.each([
  ['60', 60],
  ['0', 0],
  ['34560001', 34_560_000],
  ['-1', undefined],
  ['1.5', undefined],
  ['1e300', undefined],
  ['"60"', undefined],
])('a stored lifetime of %s is one of %s seconds', (text, maxAge) => {
  expect(cookieLifetimeOf(restored({ [COOKIE_MAX_AGE_ATTRIBUTE]: text })).maxAge).toBe(maxAge);
});
