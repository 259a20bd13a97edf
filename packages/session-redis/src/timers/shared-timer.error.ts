/** A timer was started for an application while another one has it. */
export class SharedTimerError extends Error {
  override readonly name = 'SharedTimerError';

  constructor(timer: string) {
    super(
      `This ${timer} serves an application already: give each application one of its own, or close the other first`,
    );
  }
}
