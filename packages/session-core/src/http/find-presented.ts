import type { SessionRepository } from '../repository/session.repository.js';
import { MOST_TOKENS } from '../resolvers/session-id.resolver.js';
import type { Session } from '../session/session.js';
import { principalOf } from './counting-session.js';

// Browsers send one token of their own. More are old ones of other paths, or planted: only these cost a second round trip.
const LOOKED_UP_FIRST = 5;

/**
 * The live sessions with the ids that a request presents in several places, such as the cookies of several names. One
 * round trip looks up the first five ids of each place. Where none of them opens the session of a principal, a second
 * round trip looks up the others, 64 at most in all: otherwise, planted cookies would hide the user's own.
 *
 * @param all looks up the others in any case, for a caller that has to know whether there are two principals
 */
export async function findPresented(
  repository: Pick<SessionRepository, 'findByIds'>,
  places: readonly (readonly string[])[],
  all = false,
): Promise<(Session | null)[][]> {
  const found = await inOneRoundTrip(
    repository,
    places.map((ids) => ids.slice(0, LOOKED_UP_FIRST)),
  );
  if (!places.some(({ length }) => length > LOOKED_UP_FIRST)) return found;
  let room = MOST_TOKENS;
  const others = places.map((ids, place) => {
    if (!all && found[place]!.some((session) => principalOf(session) !== undefined)) return [];
    const more = ids.slice(LOOKED_UP_FIRST, LOOKED_UP_FIRST + room);
    room -= more.length;
    return more;
  });
  if (room === MOST_TOKENS) return found;
  const foundLater = await inOneRoundTrip(repository, others);
  return found.map((sessions, place) => [...sessions, ...foundLater[place]!]);
}

async function inOneRoundTrip(
  repository: Pick<SessionRepository, 'findByIds'>,
  places: readonly (readonly string[])[],
): Promise<(Session | null)[][]> {
  const sessions = await repository.findByIds(places.flat());
  return places.map(({ length }) => sessions.splice(0, length));
}
