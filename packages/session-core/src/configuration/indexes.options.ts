import type { OptionReader } from '../option-reading/option.reader.js';
import { indexProblem, type SessionIndex, SessionIndexes } from '../session/session-indexes.js';

/** Reads the option `indexes`. */
export function readIndexes(reader: OptionReader): SessionIndexes {
  const indexes = reader.value('indexes', isRecordOfFunctions, 'an object of functions, by the names of the indexes');
  const problems = Object.entries(indexes ?? {}).flatMap(([name, index]) => {
    const problem = indexProblem(name, index);
    return problem === undefined ? [] : [`Option \`indexes\`: the index ${JSON.stringify(name)} ${problem}.`];
  });
  for (const problem of problems) reader.problem(problem);
  return new SessionIndexes(problems.length > 0 ? {} : indexes);
}

function isRecordOfFunctions(value: unknown): value is Record<string, SessionIndex> {
  const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isRecord && Object.values(value).every((each) => typeof each === 'function');
}
