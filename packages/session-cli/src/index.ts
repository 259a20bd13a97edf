// `@nest-session/cli`: what its program does, for programs of your own.
export { repartition } from './repartitioning/repartition.js';
export type { RepartitionOptions, RepartitionProgress } from './repartitioning/repartition.js';
