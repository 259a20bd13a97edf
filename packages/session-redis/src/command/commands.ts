import type { Command } from './command.js';
import { DEAD_LETTERS } from './dead-letters.command.js';
import { DOCTOR } from './doctor.command.js';
import { END } from './end.command.js';
import { ERASE } from './erase.command.js';
import { EXPIRATIONS } from './expirations.command.js';
import { GROUPS } from './groups.command.js';
import { LIST } from './list.command.js';
import { REPARTITION } from './repartition.command.js';
import { SHOW } from './show.command.js';
import { SPRING } from './spring.command.js';
import { STATS } from './stats.command.js';
import { VERIFY } from './verify.command.js';
import { WATCH } from './watch.command.js';

/** All commands, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  DOCTOR,
  STATS,
  LIST,
  SHOW,
  END,
  ERASE,
  GROUPS,
  DEAD_LETTERS,
  WATCH,
  VERIFY,
  SPRING,
  EXPIRATIONS,
  REPARTITION,
];
