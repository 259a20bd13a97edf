/** What an instance does in the background, from the start of the application to its end. */
export interface BackgroundService {
  /** Begins. A promise rejects when the application must not start, and resolves when it may go on. */
  start(): Promise<void> | void;
  /**
   * Begins nothing more. A promise resolves when what was begun has ended. Harmless before `start()`, and when
   * repeated.
   */
  stop(): Promise<void> | void;
}
