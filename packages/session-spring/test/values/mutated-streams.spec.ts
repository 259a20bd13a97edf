import fc from 'fast-check';
import { READING_LIMITS } from '../../src/values/json-values.js';
import { readStoredValue } from '../../src/values/stored-value.js';
import { RECORDED_CONTEXTS, RECORDED_VALUES, stored } from '../support/spring.records.js';

const RUNS = 10_000;
/** As many steps of the reader as a stream may take for each of its bytes. */
const STEPS_PER_BYTE = 4;

const STREAMS = [...RECORDED_VALUES, ...RECORDED_CONTEXTS]
  .map(({ jdk }) => stored(jdk))
  .filter(({ length }) => length > 0);

type Edit = (bytes: Buffer) => Buffer;

/** Where in a stream, as a part of its length. */
const place = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const at = (bytes: Buffer, where: number) => Math.floor(where * bytes.length);

const flip = fc.tuple(place, fc.nat(7)).map(([where, bit]): Edit => (bytes) => {
  if (bytes.length === 0) return bytes;
  const copy = Buffer.from(bytes);
  copy[at(bytes, where)]! ^= 1 << bit;
  return copy;
});
const cut = fc.tuple(place, place).map(([from, length]): Edit => (bytes) => {
  const start = at(bytes, from);
  return Buffer.concat([bytes.subarray(0, start), bytes.subarray(start + Math.ceil(length * 16))]);
});
const end = place.map(
  (where): Edit =>
    (bytes) =>
      bytes.subarray(0, at(bytes, where)),
);
const inserted = fc.oneof(
  fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes)),
  // Codes of the protocol, and references.
  fc.integer({ min: 0x70, max: 0x7e }).map((code) => Buffer.of(code)),
  fc.nat(20).map((handle) => Buffer.of(0x71, 0, 0x7e, 0, handle)),
  fc.constantFrom(Buffer.of(0x7f, 0xff, 0xff, 0xff), Buffer.of(0xff, 0xff, 0xff, 0xff), Buffer.alloc(8, 0xff)),
);
const insertion = fc.tuple(place, inserted, fc.boolean()).map(([where, extra, replaces]): Edit => (bytes) => {
  const start = at(bytes, where);
  return Buffer.concat([bytes.subarray(0, start), extra, bytes.subarray(start + (replaces ? extra.length : 0))]);
});
const duplication = fc.tuple(place, place, place, fc.nat(20)).map(([from, length, to, times]): Edit => (bytes) => {
  const start = at(bytes, from);
  const piece = bytes.subarray(start, start + Math.ceil(length * 64));
  const target = at(bytes, to);
  return Buffer.concat([bytes.subarray(0, target), ...Array<Buffer>(times).fill(piece), bytes.subarray(target)]);
});
/** A piece of another stream. */
const graft = fc.tuple(place, fc.constantFrom(...STREAMS), place).map(([where, other, from]): Edit => (bytes) => {
  const [start, begin] = [at(bytes, where), at(other, from)];
  return Buffer.concat([bytes.subarray(0, start), other.subarray(begin, begin + 200), bytes.subarray(start)]);
});

const edits = fc.array(fc.oneof(flip, flip, cut, end, insertion, duplication, graft), { minLength: 1, maxLength: 6 });

it(`reads ${RUNS} mutated streams without an error, in steps and room that grow with their length`, () => {
  let [readable, longest] = [0, 0];
  const mutated = fc
    .tuple(fc.constantFrom(...STREAMS), edits)
    .map(([bytes, all]) => all.reduce((each, edit) => edit(each), bytes));
  fc.assert(
    fc.property(mutated, (bytes) => {
      const began = performance.now();
      const value = readStoredValue(bytes);
      longest = Math.max(longest, performance.now() - began);
      const steps = 100 + STEPS_PER_BYTE * bytes.length;
      expect(readStoredValue(bytes, { ...READING_LIMITS, steps })).toEqual(value);
      if (value === undefined) return;
      readable++;
      const json = JSON.stringify(value);
      expect(json.length).toBeLessThan(1000 + 100 * bytes.length);
      expect(JSON.stringify(JSON.parse(json))).toBe(json);
    }),
    { numRuns: RUNS },
  );
  // Many mutations leave a stream readable: otherwise the test would look at its first bytes only.
  expect(readable).toBeGreaterThan(RUNS / 20);
  expect(longest).toBeLessThan(1000);
});
