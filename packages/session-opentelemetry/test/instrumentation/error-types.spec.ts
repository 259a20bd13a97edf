import { SessionStoreError } from '@nest-session/core';
import { ErrorTypes } from '../../src/sdk-calls.js';

class PaymentError extends Error {}

it('names the class of an error, and of what a store threw', () => {
  const types = new ErrorTypes();
  expect(types.of(new PaymentError('ann'))).toBe('PaymentError');
  expect(types.of(new SessionStoreError('no reply'))).toBe('SessionStoreError');
  expect(types.of(new SessionStoreError('failed', { cause: new PaymentError() }))).toBe('PaymentError');
  expect(['text', undefined, null].map((each) => types.of(each))).toEqual(['string', 'undefined', '_OTHER']);
});

it('never reads the name or the message of an error', () => {
  const error = Object.assign(new PaymentError('secret'), { name: 'secret' });
  expect(new ErrorTypes().of(error)).toBe('PaymentError');
  const named = Object.defineProperty(class extends Error {}, 'name', { value: 'user ann@example.org' });
  expect(new ErrorTypes().of(new named())).toBe('_OTHER');
  expect(new ErrorTypes().of(Object.create(null))).toBe('_OTHER');
});

it('tells at most fifty classes apart', () => {
  const types = new ErrorTypes();
  const thrown = Array.from({ length: 60 }, (_, i) =>
    Object.defineProperty(class extends Error {}, 'name', { value: `E${i}` }),
  );
  const names = thrown.map((type) => types.of(new type()));
  expect(new Set(names).size).toBe(51);
  expect(names.slice(0, 50)).not.toContain('_OTHER');
  expect(names.slice(50)).toEqual(Array(10).fill('_OTHER'));
  expect(types.of(new thrown[0]!())).toBe('E0');
});
