import { parseDuration } from '../../src/option-reading/duration.js';

describe('parseDuration', () => {
  it.each<[unknown, number]>([
    ['500ms', 500],
    ['30s', 30_000],
    ['30m', 1_800_000],
    ['1.5h', 5_400_000],
    ['30d', 2_592_000_000],
    [' 2s ', 2000],
    [0, 0],
    ['0', 0],
    ['0s', 0],
  ])('reads %p', (value, ms) => expect(parseDuration(value)).toBe(ms));

  it.each<[unknown, string]>([
    [30, "is the bare number 30: name its unit, such as '30s' or '30ms'"],
    [NaN, "is NaN, which is not a duration: write a number and its unit, such as '30m'"],
    [Infinity, 'is Infinity, which is not a duration'],
    [-1, 'is -1, which is not a duration'],
    ['1800', `is the bare number "1800": name its unit, such as '1800s' or '1800ms'`],
    ['1.25', `is the bare number "1.25": name its unit, such as '1.25s' or '1.25ms'`],
    [' 30 ', `is the bare number " 30 ": name its unit, such as '30s' or '30ms'`],
    ['x30', 'is not a duration'],
    ['half an hour', "write a number and its unit, such as '30m' (units: ms, s, m, h, d)"],
    ['-5s', 'is not a duration'],
    ['5 s', 'is not a duration'],
    ['5w', 'is not a duration'],
    ['1m30s', 'is not a duration'],
    ['', 'is not a duration'],
    ['s', 'is not a duration'],
    [true, 'is not a duration'],
    [{}, 'is not a duration'],
    [null, 'is not a duration'],
  ])('refuses %p', (value, problem) => expect(parseDuration(value)).toContain(problem));

  it('does not quote what is no number', () => {
    expect(parseDuration('secret')).toMatch(/^is not a duration: write/);
  });
});
