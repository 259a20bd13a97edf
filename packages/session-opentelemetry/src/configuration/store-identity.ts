import { Injectable } from '@nestjs/common';

/** Which store and which group the application has. Known before it serves any request. */
@Injectable()
export class StoreIdentity {
  /** Tells it from other stores of the process. */
  namespace = '';
  /** The group of this instance; undefined for a store without groups. */
  group: string | undefined;
}
