import { IndexedSessionRepository } from '@nest-session/core';
import type { SessionChange, SessionRecord, WriteReply } from '@nest-session/core/store';
import { FileSessionRepository, type FileSessionRepositoryOptions } from '../src/file-session.repository.js';

/** Creates a new repository before each call, which knows only the content of the files. One call at a time. */
export class RestartedRepository extends IndexedSessionRepository {
  #lastCall: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: FileSessionRepositoryOptions) {
    super(options);
  }

  removeExpired(): Promise<void> {
    return this.#restarted((store) => store.removeExpired());
  }

  protected load(ids: readonly string[]): Promise<SessionRecord[]> {
    return this.#restarted((store) => store.load(ids));
  }

  protected lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    return this.#restarted((store) => store.lookUp(indexName, value));
  }

  protected override readClock(): Promise<number> {
    return this.#restarted((store) => store.readClock());
  }

  protected write(change: SessionChange): Promise<WriteReply> {
    return this.#restarted((store) => store.write(change));
  }

  protected override endListed(indexName: string, value: string, except: readonly string[]): Promise<number> {
    return this.#restarted((store) => store.endListed(indexName, value, except));
  }

  protected override endEvery(): Promise<void> {
    return this.#restarted((store) => store.endEvery());
  }

  #restarted<T>(call: (store: OpenRepository) => Promise<T>): Promise<T> {
    const result = this.#lastCall.then(() => call(new OpenRepository(this.options)));
    this.#lastCall = result.catch(() => undefined);
    return result;
  }
}

class OpenRepository extends FileSessionRepository {
  override load(ids: readonly string[]): Promise<SessionRecord[]> {
    return super.load(ids);
  }

  override lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    return super.lookUp(indexName, value);
  }

  override readClock(): Promise<number> {
    return super.readClock();
  }

  override write(change: SessionChange): Promise<WriteReply> {
    return super.write(change);
  }

  override endListed(indexName: string, value: string, except: readonly string[]): Promise<number> {
    return super.endListed(indexName, value, except);
  }

  override endEvery(): Promise<void> {
    return super.endEvery();
  }
}
