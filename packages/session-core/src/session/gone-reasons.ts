import { FORWARDING_TIME, type WriteReply } from './session-change.js';

/** Whether the session of a change is gone because another request has rotated it; undefined: no. */
export function isRotated(reply: WriteReply): boolean | undefined {
  return 'rotated' in reply ? reply.rotated : undefined;
}

/** Why a save that finds its session gone is an error. */
export const NOT_CREATED =
  'The session was not created: the token that the request presented was replaced less than ' +
  `${FORWARDING_TIME / 1000} s ago`;

export const NOT_SIGNED_IN =
  'Nobody was signed in: the session had ended in the meantime, or another request had changed its id';

export const REVOKED =
  'Nobody was signed in: every session of the user was ended after the request began, as a change of the password does. ' +
  'In a request that ends them itself and then signs the user in, pass its session to Sessions.endAll() as `except`';

export const NOT_ENDED =
  'No session was ended: another request had changed the id of the session, and it is no longer the session of the ' +
  'same user';

export const NOT_STARTED_ANEW =
  'No session was started anew: the session had ended in the meantime, or another request had changed its id';
