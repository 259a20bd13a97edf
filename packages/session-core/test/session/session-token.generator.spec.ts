import { RandomSessionTokenGenerator } from '../../src/session/session-token.js';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const DRAWS = 10_000;

/** The distance of counts from a uniform distribution: Pearson's chi-square. */
function chiSquare(counts: readonly number[]): number {
  const expected = DRAWS / counts.length;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

describe('RandomSessionTokenGenerator', () => {
  const generator = new RandomSessionTokenGenerator();

  it('draws each character with the same probability at each place, and no token twice', () => {
    const tokens = Array.from({ length: DRAWS }, () => generator.generate());
    expect(new Set(tokens).size).toBe(DRAWS);
    for (let place = 0; place < 43; place++) {
      // The last character holds the 4 bits that are left of 256.
      const characters = place < 42 ? ALPHABET.split('') : ALPHABET.split('').filter((_, i) => i % 4 === 0);
      const counts = new Map(characters.map((character) => [character, 0]));
      for (const token of tokens) counts.set(token[place]!, counts.get(token[place]!)! + 1);
      expect([...counts.keys()]).toEqual(characters);
      // The probability that chance alone exceeds this value is 10^-16.
      expect(chiSquare([...counts.values()])).toBeLessThan(200);
    }
  });

  it('draws from a cryptographic source', () => {
    const { random } = Math;
    try {
      Math.random = () => {
        throw new Error('Anybody can know what Math.random() says next');
      };
      expect(generator.generate()).not.toBe(generator.generate());
    } finally {
      Math.random = random;
    }
  });
});
