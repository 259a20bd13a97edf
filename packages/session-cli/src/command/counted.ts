/** A number of things, such as `1 session` and `2 sessions`. `things`: the plural. */
export function counted(count: number, thing: string, things = `${thing}s`): string {
  return `${count} ${count === 1 ? thing : things}`;
}
