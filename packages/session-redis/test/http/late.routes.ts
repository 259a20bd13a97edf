import { Controller, Inject, Injectable, Module, Param, Post } from '@nestjs/common';
import { Session } from '@nest-session/core';

/** What a request of the old session does to it before it is held. */
const BEFORE: Readonly<Record<string, (session: Session) => unknown>> = {
  attribute: (session) => session.setAttribute('attribute', 'late'),
  rotation: (session) => session.changeSessionId(),
  principal: (session) => (session.principalName = 'mallory'),
  login: (session) => {
    session.principalName = 'mallory';
    session.changeSessionId();
  },
  interval: (session) => (session.maxInactiveInterval = 86_400),
  logout: (session) => session.invalidate(),
};

/** What it does when it is let go on. */
const AFTER: Readonly<Record<string, (session: Session) => Promise<unknown>>> = {
  update: (session) => session.updateAttribute('update', () => 'late'),
  save: (session) => {
    session.setAttribute('save', 'late');
    return session.save();
  },
};

export const LATE_KINDS = [...Object.keys(BEFORE), ...Object.keys(AFTER)];

/** Where the late requests of each round are held. */
@Injectable()
export class LateRequests {
  readonly #rounds = new Map<
    string,
    { held: number; readonly released: Promise<void>; readonly release: () => void }
  >();

  heldIn(round: string): number {
    return this.#round(round).held;
  }

  release(round: string): void {
    this.#round(round).release();
  }

  async hold(round: string): Promise<void> {
    const entry = this.#round(round);
    entry.held++;
    await entry.released;
  }

  #round(name: string) {
    let round = this.#rounds.get(name);
    if (!round) {
      let release!: () => void;
      const released = new Promise<void>((resolve) => (release = resolve));
      this.#rounds.set(name, (round = { held: 0, released, release }));
    }
    return round;
  }
}

@Controller('late')
class LateController {
  constructor(@Inject(LateRequests) private readonly late: LateRequests) {}

  @Post(':kind/:round')
  async answer(@Session() session: Session, @Param('kind') kind: string, @Param('round') round: string) {
    BEFORE[kind]?.(session);
    await this.late.hold(round);
    await AFTER[kind]?.(session);
    return { ok: true };
  }
}

@Module({ controllers: [LateController], providers: [LateRequests] })
export class LateModule {}
