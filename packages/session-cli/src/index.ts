// `@nest-session/cli`: what its program does, for programs of your own.
export { repartition, type RepartitionOptions, type RepartitionProgress } from './repartitioning/repartition-run.js';
