/** Keys that look random and are the same in every run. */
export const SIGNING_KEYS = [
  'KVkVd5MTJ2K8r0HPu9cYBqAn3zwXfGe7LmSiOjDhQt4=',
  'p1RgU6vEwN0yZoCbI5xKsWaT8lMdF2hJq9XnBeVcGuY=',
  'Z7mQfHs4iDkAoPLc1TbXeWu0vRySgN9jB6x3KtMwYJU=',
] as const;
