import { findPartly, type SessionRepository } from '../repository/session.repository.js';
import { MOST_TOKENS } from '../resolvers/session-id.resolver.js';
import { PRINCIPAL_ATTRIBUTE } from '../session/attribute-names.js';
import type { Session } from '../session/session.js';
import { TrackedSession } from '../session/tracked-session.js';

// Browsers send one token of their own. More are old ones of other paths, or planted. Only these cost a second round
// trip.
export const LOADED_UNSEEN = 5;

export const MOST_PRESENTED = LOADED_UNSEEN + MOST_TOKENS;

export interface PresentedSessions {
  /** In the order of the ids. Of those that do not count, maybe only the principal is known. */
  readonly sessions: readonly (Session | null)[];
  readonly counts: number;
}

/**
 * Looks for 64 ids at most besides the first five of each place. One round trip loads five sessions in all, or one of
 * each place. Where there are more, it only asks whose they are: a header of cookies must not cost 64 sessions.
 */
export async function findPresented(
  repository: SessionRepository,
  places: readonly (readonly string[])[],
): Promise<PresentedSessions[]> {
  const [first, ...others] = places;
  // Most requests.
  if (first && others.length === 0 && first.length <= LOADED_UNSEEN)
    return [counted(await repository.findByIds(first))];
  const ids = bounded(places);
  const flat = ids.flat();
  if (flat.length <= LOADED_UNSEEN) {
    const found = await repository.findByIds(flat);
    return ids.map(({ length }) => counted(found.splice(0, length)));
  }
  const isLoaded = ids.map(({ length }) => length === 1);
  const [loaded, asked] = await Promise.all([
    repository.findByIds(ids.filter((_, place) => isLoaded[place]).flat()),
    findPartly(repository, ids.filter((_, place) => !isLoaded[place]).flat(), [PRINCIPAL_ATTRIBUTE]),
  ]);
  return Promise.all(
    ids.map(async ({ length }, place) =>
      isLoaded[place] ? counted(loaded.splice(0, length)) : loadCounting(repository, asked.splice(0, length)),
    ),
  );
}

function counted(sessions: readonly (Session | null)[]): PresentedSessions {
  return { sessions, counts: indexOfSessionThatCounts(sessions) };
}

function bounded(places: readonly (readonly string[])[]): (readonly string[])[] {
  let room = MOST_TOKENS;
  return places.map((ids) => {
    const more = ids.slice(LOADED_UNSEEN, LOADED_UNSEEN + room).length;
    room -= more;
    return ids.slice(0, LOADED_UNSEEN + more);
  });
}

async function loadCounting(repository: SessionRepository, sessions: (Session | null)[]): Promise<PresentedSessions> {
  for (;;) {
    const counts = indexOfSessionThatCounts(sessions);
    const known = sessions[counts];
    if (!known) return { sessions, counts };
    const loaded = await repository.findById(known.id);
    sessions[counts] = loaded;
    // Otherwise it has ended meanwhile, and the next one counts.
    if (loaded) return { sessions, counts };
  }
}

/** The first session of a principal counts, or else the first. */
function indexOfSessionThatCounts(sessions: readonly (Session | null)[]): number {
  // Most requests present one, and nothing of it need be decoded.
  if (sessions.length === 1) return sessions[0] ? 0 : -1;
  const ofPrincipal = sessions.findIndex((session) => principalOf(session) !== undefined);
  return ofPrincipal < 0 ? sessions.findIndex((session) => session !== null) : ofPrincipal;
}

export function principalOf(session: Session | null): string | undefined {
  const name = session && TrackedSession.of(session).peekAttribute(PRINCIPAL_ATTRIBUTE);
  return typeof name === 'string' ? name : undefined;
}
