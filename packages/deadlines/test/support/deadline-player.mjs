/** Sends operations of deadlines, each client one after the other, and notes how each was answered, and when. */
export function play(deadlines, kind, clients) {
  return Promise.all(clients.map((operations) => playOne(deadlines, kind, operations)));
}

async function playOne(deadlines, kind, operations) {
  const history = [];
  for (const operation of operations) {
    if (operation.rest > 0) await new Promise((resolve) => setTimeout(resolve, operation.rest));
    const from = Date.now();
    const answer = await CALLS[operation.call](deadlines, kind, operation, from);
    history.push({ ...operation, from, to: Date.now(), answer });
  }
  return history;
}

const CALLS = {
  schedule: (deadlines, kind, operation, now) =>
    deadlines.schedule(kind, operation.key, {
      ...timeOf(operation, now),
      data: operation.token,
      ifExists: operation.ifExists,
    }),
  reschedule: (deadlines, kind, operation, now) => deadlines.reschedule(kind, operation.key, timeOf(operation, now)),
  cancel: (deadlines, kind, { key }) => deadlines.cancel(kind, key),
  get: async (deadlines, kind, { key }) => (await deadlines.get(kind, key)) ?? 'none',
};

function timeOf({ wait, isInstant }, now) {
  return isInstant ? { at: now + wait } : { in: `${wait}ms` };
}
