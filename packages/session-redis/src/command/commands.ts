import type { Command } from './command.js';
import { EXPIRATIONS } from './expirations.command.js';
import { REPARTITION } from './repartition.command.js';
import { VERIFY } from './verify.command.js';

/** All commands, in the order of the help. */
export const COMMANDS: readonly Command[] = [VERIFY, EXPIRATIONS, REPARTITION];
