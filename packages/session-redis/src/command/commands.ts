import type { Command } from './command.js';
import { EXPIRATIONS } from './expirations.command.js';
import { REPARTITION } from './repartition.command.js';

/** All commands, in the order of the help. */
export const COMMANDS: readonly Command[] = [EXPIRATIONS, REPARTITION];
