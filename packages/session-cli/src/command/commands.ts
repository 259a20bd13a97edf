import type { Command } from './command.js';
import { CHECK_NAMES } from '../doctor/diagnosis.js';
import { USES } from '../rights/user-rights.js';

export const COMMANDS: readonly Command[] = [
  {
    name: 'doctor',
    text: 'Checks Redis, its settings, and whether the application does its work, and says what to do. Changes nothing.',
    options: {
      ignore: { value: '<check,...>', text: `leave out checks: ${CHECK_NAMES.join(', ')}` },
      'acl-user': { value: '<name>', text: 'check the rights of this user of Redis, by ACL DRYRUN' },
    },
    load: () => import('./doctor.command.js'),
  },
  {
    name: 'acl',
    text: 'Prints the rights in Redis that a process needs, and no more. Needs no Redis.',
    options: {
      for: { value: '<use,...>', text: `what it is used for: ${USES.join(', ')} (default sessions)` },
      format: { value: '<format>', text: 'redis, valkey (9.1 and later: this database only) or elasticache' },
      'acl-user': { value: '<name>', text: 'the name of the user (default app)' },
      database: { value: '<number>', text: 'the number of the database (default 0)' },
    },
    load: () => import('./acl.command.js'),
  },
  {
    name: 'explain',
    text: 'Says what a line of the log means, and what to do.',
    argument: { value: '<line>', text: 'the line, in single quotes; without it, standard input is read' },
    options: {},
    load: () => import('./explain.command.js'),
  },
  {
    name: 'stats',
    text: 'Counts sessions or deadlines, events, groups and instances.',
    options: {},
    load: () => import('./stats.command.js'),
  },
  {
    name: 'list',
    text: 'Lists the sessions of a user, the latest sign-in first.',
    options: {
      user: { value: '<name>', text: 'the name that the application signs in', required: true },
      limit: { value: '<number>', text: 'at most so many (default 100)' },
      skip: { value: '<number>', text: 'without the first ones, so many' },
    },
    load: () => import('./list.command.js'),
  },
  {
    name: 'show',
    text: 'Shows one session: its times, and the names and sizes of its attributes. It never shows a value.',
    argument: { value: '<id>', text: 'the session id', required: true },
    options: {},
    load: () => import('./show.command.js'),
  },
  {
    name: 'end',
    text: 'Ends one session, all sessions of a user, or all that began before a time, and records their events.',
    argument: { value: '<id>', text: 'the session id' },
    options: {
      user: { value: '<name>', text: 'all sessions of this user instead' },
      'begun-before': {
        value: '<time>',
        text: 'all sessions instead that nobody signed in to later: now, or such as 2026-11-26T12:00:00Z',
      },
      retention: { value: '<time>', text: 'the option events.retention (default 1h)' },
      yes: { text: 'end several sessions' },
    },
    load: () => import('./end.command.js'),
  },
  {
    name: 'erase',
    text: 'Erases all that is kept of a user: sessions, also ended ones, and events and dead letters with the name or data.',
    options: {
      user: { value: '<name>', text: 'the name with which the user signs in', required: true },
      yes: { text: 'erase it; without this option, only what would be erased is counted' },
    },
    load: () => import('./erase.command.js'),
  },
  {
    name: 'groups',
    text: 'Lists the groups that handle events, and how far each is. Can remove one that is no longer used.',
    options: {
      remove: { value: '<group>', text: 'remove this group: no events are kept for it any more' },
      yes: { text: 'do what cannot be undone' },
    },
    load: () => import('./groups.command.js'),
  },
  {
    name: 'dead-letters',
    text: 'Lists the events that could not be handled, the oldest first. Can replay or discard them.',
    options: {
      group: { value: '<group>', text: 'only those of this group' },
      limit: { value: '<number>', text: 'list at most so many (default 100)' },
      after: { value: '<id>', text: 'list those behind this one' },
      replay: { value: '<id|all>', text: 'let its group handle it again' },
      discard: { value: '<id|all>', text: 'delete it' },
      yes: { text: 'do what cannot be undone' },
    },
    load: () => import('./dead-letters.command.js'),
  },
  {
    name: 'watch',
    text: 'Shows events as they are recorded, until you press Ctrl+C. Only events that a handler wants are recorded.',
    options: {},
    load: () => import('./watch.command.js'),
  },
  {
    name: 'verify',
    text: 'Looks for what breaks a rule of the data model, beside the applications, and mends it if you ask for that.',
    options: {
      repair: { text: 'mend what is found' },
      rate: { value: '<number>', text: 'keys and entries in a second at most (default 20000)' },
    },
    load: () => import('./verify.command.js'),
  },
  {
    name: 'spring',
    text: 'Looks at the sessions of Spring Session, and says how they are stored. Changes nothing.',
    options: {
      sample: { value: '<number>', text: 'read so many sessions, 1 to 10000 (default 100)' },
      rate: { value: '<number>', text: 'keys in a second at most (default 20000)' },
    },
    load: () => import('./spring.command.js'),
  },
  {
    name: 'repartition',
    text: 'Moves all sessions and events to another number of partitions. Stop all instances first.',
    options: {
      from: { value: '<number>', text: 'the current number of partitions', required: true },
      to: { value: '<number>', text: 'the new number of partitions', required: true },
    },
    load: () => import('./repartition.command.js'),
  },
];
