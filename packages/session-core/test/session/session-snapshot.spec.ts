import { PRINCIPAL_ATTRIBUTE } from '../../src/session/attribute-names.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';
import { SessionSnapshot } from '../../src/session/session-snapshot.js';

describe('SessionSnapshot', () => {
  const record = { id: 'id', creationTime: 1, lastAccessedTime: 2, maxInactiveInterval: 3, absoluteTimeout: 4 };

  it('decodes at each read, so that readers do not see changes of each other', () => {
    const attributes: [string, string][] = [
      ['items', '["a"]'],
      [PRINCIPAL_ATTRIBUTE, '"ann"'],
    ];
    const snapshot = new SessionSnapshot({ ...record, attributes }, new JsonAttributeSerializer());
    snapshot.getRequiredAttribute<string[]>('items').push('b');
    expect(snapshot.getAttribute('items')).toEqual(['a']);
    expect(snapshot).toMatchObject({ ...record, principalName: 'ann' });
    expect(() => snapshot.getRequiredAttribute('cart')).toThrow('"cart" is required and missing');
    expect(snapshot.getAttributeOrDefault('cart', 0)).toBe(0);
  });

  it('is empty, not missing, when the data was lost', () => {
    const snapshot = SessionSnapshot.empty('id', new JsonAttributeSerializer());
    expect(snapshot).toMatchObject({ id: 'id', attributeNames: [], principalName: undefined });
    expect(snapshot.getAttribute('items')).toBeUndefined();
  });
});
