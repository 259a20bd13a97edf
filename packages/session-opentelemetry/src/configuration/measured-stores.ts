import { Injectable } from '@nestjs/common';

/** A store, as attributes name it. */
interface MeasuredStore {
  /** Tells it from other stores of the process. */
  readonly namespace: string;
  /** The group of this instance; undefined for a store without groups. */
  readonly group: string | undefined;
}

/** Which stores the application has. Known before it serves any request. */
@Injectable()
export class MeasuredStores {
  sessions: MeasuredStore | undefined;
  deadlines: MeasuredStore | undefined;

  /** The store of sessions or, without one, the store of deadlines. */
  get first(): MeasuredStore {
    return this.sessions ?? this.deadlines ?? NONE;
  }

  /** The store that records events of a type. */
  ofEvents(type: string): MeasuredStore {
    return (type === 'deadline' ? this.deadlines : this.sessions) ?? NONE;
  }
}

const NONE: MeasuredStore = { namespace: '', group: undefined };
