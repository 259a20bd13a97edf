import fc from 'fast-check';

/**
 * Any character of Unicode. The unit `binary` of fast-check, which has the same ones, lists them all first: half a
 * second for each test file.
 */
export const codePoint = fc
  .oneof(fc.nat(0xd7ff), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code));
