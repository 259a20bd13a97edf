import { HttpException } from '@nestjs/common';
import { markRefusal, refusal } from '@nest-session/core/internal';

/** A bound on deadlines: the name of its option. */
export type DeadlineBound = 'maxDataSize' | 'maxScheduled';

/**
 * Thrown when a deadline would exceed a bound of `DeadlineModule`: it was not scheduled, and what stood under its key
 * stays. As an HTTP exception, it is a 413 or 503 response without details.
 */
export class DeadlineBoundError extends HttpException {
  constructor(
    /** The bound that would be exceeded. */
    readonly bound: DeadlineBound,
    /** The value of the bound: bytes, or a number of deadlines. */
    readonly limit: number,
    /** The name of the kind of deadlines. */
    readonly deadlineName: string,
  ) {
    super(...refusal(bound === 'maxDataSize' ? 'deadline-too-large' : 'too-many-deadlines'));
    const reason = REASONS[bound](limit);
    markRefusal(this, 'DeadlineBoundError', `A deadline ${JSON.stringify(deadlineName)} was not scheduled: ${reason}`);
  }
}

const REASONS: Readonly<Record<DeadlineBound, (limit: number) => string>> = {
  maxDataSize: (limit) =>
    `its data take more bytes than the bound \`maxDataSize\` allows (${limit}): keep such data elsewhere and their key in the deadline`,
  maxScheduled: (limit) =>
    `as many of this name as the bound \`maxScheduled\` allows (${limit}) wait already: cancel those that are no longer needed, or raise it`,
};

/**
 * Thrown when the data of a deadline cannot be stored as they are, so that nothing was scheduled, or cannot be read.
 * The message names the deadline and, for a nested value, its path. It never quotes a value.
 */
export class DeadlineDataError extends Error {
  /** Always 'DeadlineDataError'. */
  override readonly name = 'DeadlineDataError';

  constructor(
    /** The name of the kind of deadlines. */
    readonly deadlineName: string,
    problem: string,
    options?: { readonly cause?: unknown },
  ) {
    super(`The data of a deadline ${JSON.stringify(deadlineName)} ${problem}`, options);
  }
}
