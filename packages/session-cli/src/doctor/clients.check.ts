import { type Check, ok, warning } from './diagnosis.js';

const MUCH = 0.8;

/** Whether Redis is about to refuse connections. */
export const CLIENTS: Check = {
  look: ({ nodes }) =>
    nodes.flatMap(({ address, info }) => {
      const [connected, most] = [Number(info.get('connected_clients')), Number(info.get('maxclients'))];
      if (Number.isNaN(connected + most)) return [];
      const message = `${address} has ${connected} of ${most} connections`;
      return [
        connected < MUCH * most ? ok(message) : warning(message, 'Raise maxclients, or find out who keeps so many.'),
      ];
    }),
};
