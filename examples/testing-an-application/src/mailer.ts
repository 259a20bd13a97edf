import { Injectable, Logger } from '@nestjs/common';

@Injectable()
export class Mailer {
  readonly #logger = new Logger(Mailer.name);

  async send(to: string, text: string): Promise<void> {
    this.#logger.log(`To ${to}: ${text}`);
  }
}
