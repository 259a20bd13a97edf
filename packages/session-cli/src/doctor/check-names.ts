/** The names of the checks, in the order in which `doctor` prints what they find. */
export const CHECK_NAMES = [
  'server',
  'format',
  'rights',
  'clock',
  'latency',
  'memory',
  'clients',
  'persistence',
  'notifications',
  'instances',
  'cleanup',
  'overdue',
  'groups',
  'dead-letters',
] as const;

export type CheckName = (typeof CHECK_NAMES)[number];
