import { EventEmitter, once } from 'node:events';
import { Controller, Inject, Injectable, Module, Param, Post } from '@nestjs/common';
import { Session } from '@nest-session/core';

/** The change that a request of the old session makes before it is held. */
const BEFORE: Readonly<Record<string, (session: Session) => unknown>> = {
  attribute: (session) => session.setAttribute('attribute', 'late'),
  rotation: (session) => session.changeSessionId(),
  principal: (session) => (session.principalName = 'mallory'),
  login: (session) => {
    session.principalName = 'mallory';
    session.changeSessionId();
  },
  interval: (session) => (session.maxInactiveInterval = 86_400),
  absoluteTimeout: (session) => (session.absoluteTimeout = 1),
  logout: (session) => session.invalidate(),
  zero: (session) => (session.maxInactiveInterval = 0),
};

/** The change that it makes when it is released. */
const AFTER: Readonly<Record<string, (session: Session) => Promise<unknown>>> = {
  update: (session) => session.updateAttribute('update', () => 'late'),
  save: (session) => {
    session.setAttribute('save', 'late');
    return session.save();
  },
};

export const LATE_KINDS = [...Object.keys(BEFORE), ...Object.keys(AFTER)];

/** The gate of one round, which opens for all requests that wait at it. */
class Door {
  readonly #arrivals = new EventEmitter();
  readonly #opened: Promise<void>;
  #waiting = 0;
  open!: () => void;

  constructor() {
    this.#opened = new Promise((resolve) => (this.open = resolve));
  }

  async pass(): Promise<void> {
    this.#waiting++;
    this.#arrivals.emit('arrival');
    await this.#opened;
  }

  /** Resolves when `count` requests wait. */
  async awaits(count: number): Promise<void> {
    while (this.#waiting < count) await once(this.#arrivals, 'arrival');
  }
}

/** Where the late requests of each round are held. */
@Injectable()
export class LateRequests {
  readonly #doors = new Map<string, Door>();

  door(round: string): Door {
    const door = this.#doors.get(round) ?? new Door();
    this.#doors.set(round, door);
    return door;
  }
}

@Controller('late')
class LateController {
  constructor(@Inject(LateRequests) private readonly late: LateRequests) {}

  @Post(':kind/:round')
  async response(@Session() session: Session, @Param('kind') kind: string, @Param('round') round: string) {
    BEFORE[kind]?.(session);
    await this.late.door(round).pass();
    await AFTER[kind]?.(session);
    return { ok: true };
  }
}

@Module({ controllers: [LateController], providers: [LateRequests] })
export class LateModule {}
