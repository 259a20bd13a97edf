import { writeData } from '../../src/events/event-data.js';
import type { AttributeSerializer } from '../../src/session/attribute.serializer.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';

class DataError extends Error {
  constructor(name: string, problem: string, options?: ErrorOptions) {
    super(`The data of ${name} ${problem}`, options);
  }
}

describe('data that have no text', () => {
  it('say why where the serializer of the library finds it', () => {
    expect(() => writeData('order', { at: new Map() }, new JsonAttributeSerializer(), DataError)).toThrow(
      /^The data of order .*Map/,
    );
  });

  it('are not in the message where another serializer quotes them', () => {
    const cause = new Error('cannot write {"card":"4111"}');
    const quoting = {
      serialize() {
        throw cause;
      },
    } as unknown as AttributeSerializer;
    const write = () => writeData('order', { card: '4111' }, quoting, DataError);
    expect(write).toThrow(new DataError('order', 'cannot be serialized', { cause }));
  });
});
