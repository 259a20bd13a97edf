import type { OptionReader } from '../option-reading/option.reader.js';
import type { SecurityLevel } from '../option-reading/security-level.js';
import { RandomSessionTokenGenerator, SessionIds, SessionTokenGenerator } from '../session/session-token.js';
import { strictIdProblems } from '../option-reading/strict-security.js';

/** Reads how tokens are drawn and how session ids are made of them. */
export function readIds(reader: OptionReader, security: SecurityLevel): SessionIds {
  const form = reader.oneOf('sessionIds', ['hashed', 'plain'], 'hashed');
  const generator = reader.value('sessionTokenGenerator', isGenerator, 'a SessionTokenGenerator');
  const ids = new SessionIds(generator ?? new RandomSessionTokenGenerator(), form);
  try {
    const drawn = [ids.draw().token.reveal(), ids.draw().token.reveal()] as const;
    if (security === 'strict') for (const problem of strictIdProblems(form, drawn)) reader.problem(problem);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    reader.problem(`Option \`sessionTokenGenerator\` cannot be used: ${reason}.`);
  }
  return ids;
}

function isGenerator(value: unknown): value is SessionTokenGenerator {
  return value instanceof SessionTokenGenerator;
}
