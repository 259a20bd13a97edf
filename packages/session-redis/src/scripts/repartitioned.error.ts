import { SessionStoreError } from '@nest-session/core';

/** A script has done nothing, because the move of the sessions to other partitions is further than this instance knew. */
export class RepartitionedError extends SessionStoreError {
  constructor() {
    super('The sessions are being moved to other partitions');
    this.name = 'RepartitionedError';
  }
}

/** Repeats what another stage of the move has interrupted. The stages follow one another, so it is repeated twice at most. */
export async function throughStages<T>(act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof RepartitionedError)) throw error;
    }
  }
}
