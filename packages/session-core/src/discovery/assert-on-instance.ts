/** @throws TypeError for a static method: handlers are methods of providers, and nothing would call it */
export function assertOnInstance(decorator: string, target: object, method: string | symbol): void {
  if (typeof target !== 'function') return;
  throw new TypeError(
    `${decorator} has no effect on the static method ${target.name}.${String(method)}: remove \`static\``,
  );
}
