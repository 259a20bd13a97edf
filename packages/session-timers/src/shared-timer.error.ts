/** Thrown when a timer is started for a second application. */
export class SharedTimerError extends Error {
  override readonly name = 'SharedTimerError';

  constructor(timer: string) {
    super(
      `This ${timer} already serves another application: give each application its own timer, or close the other first`,
    );
  }
}
