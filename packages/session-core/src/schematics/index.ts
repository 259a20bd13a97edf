// What collection.json names: the Nest CLI calls it where an application is developed, and no application loads it.
export { deadlineKind, handler } from './elements.js';
export { nestAdd } from './nest-add.js';
