import { SetMetadata } from '@nestjs/common';
import type { AdminRight } from '../configuration/admin-rights.js';

export const NEEDED_RIGHT = Symbol('NEEDED_RIGHT');

/** The right that a handler needs. */
export function Needs(right: AdminRight): MethodDecorator {
  return SetMetadata(NEEDED_RIGHT, right);
}
