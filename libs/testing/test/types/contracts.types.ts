// What authors of stores write, and what must not compile, against the built types. Checked by npm run typecheck.
import type { SessionRepository } from '@nest-session/core';
import { registerChecks, sessionRepositoryContract } from '@nest-session/testing/contracts';

export function contract(repository: SessionRepository): void {
  const open = () => ({ repository, advance: () => undefined });
  registerChecks(sessionRepositoryContract({ open, offers: ['indexes', 'events'] }), { describe, it });
  // @ts-expect-error a store says what it offers
  sessionRepositoryContract({ open });
  // @ts-expect-error no such part of the contract
  sessionRepositoryContract({ open, offers: ['index'] });
  // @ts-expect-error a store whose clock cannot be set
  sessionRepositoryContract({ open: () => ({ repository }), offers: [] });
  // @ts-expect-error skipped tests need `it.skip`
  registerChecks([], { describe, it: () => undefined });
}

type Contracts = typeof import('@nest-session/testing/contracts');

export type NotForContracts = [
  // @ts-expect-error of @nest-session/testing
  Contracts['RedisServer'],
  // @ts-expect-error of @nest-session/testing
  Contracts['signIn'],
];
