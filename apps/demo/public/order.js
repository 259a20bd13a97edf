// The latest order of the session, from the cart to its payment or its deadline.
import { $, chips, fill, minutes, set } from './dom.js';
import { change } from './requests.js';

const SECONDS = 30;
/** Milliseconds that a payment takes to arrive, more or less. */
const ON_THE_WAY = 25;

/** The order as the server last told us, and how far its clock is ahead of this browser's, in milliseconds. */
let order;
let ahead = 0;

/** Places an order, and resolves to it. */
export async function placeOrder(seconds = SECONDS) {
  const placed = await change('POST', '/orders', { seconds });
  showOrder(placed);
  return placed;
}

export async function payOrder() {
  showOrder(await change('POST', '/orders/pay'));
}

/** Pays so that the payment arrives about when the order is due: either may come first. */
export async function payAtLast() {
  await new Promise((resolve) => setTimeout(resolve, timeLeft() - ON_THE_WAY));
  await payOrder();
}

/** News of an order. They may come twice, and in any order. */
export function showOrder(fresh) {
  const isSame = order?.id === fresh.id;
  if (order && (isSame ? fresh.state === 'unpaid' : fresh.placedAt < order.placedAt)) return;
  order = isSame ? { ...order, ...fresh } : fresh;
  $('order-line').hidden = false;
  fill('ordered', [...chips(order.items).children]);
}

/** What the server's clock shows. */
export function setClock(now) {
  ahead = now - Date.now();
}

/** `payable`: the order that the session can pay. */
export function tickOrder(payable) {
  const isUnpaid = order?.state === 'unpaid';
  const isPayable = isUnpaid && order.id === payable;
  const isFocused = !isPayable && $('payment').contains(document.activeElement);
  $('placing').hidden = isPayable;
  $('payment').hidden = !isPayable;
  if (isFocused) $('order-title').focus();
  if (!order) return;
  set('order-state', order.state);
  $('order-state').classList.toggle('there', order.state === 'paid');
  set('order-about', about(order, timeLeft()));
  set('order-rest', isUnpaid ? minutes(Math.ceil(timeLeft() / 1000)) : '');
}

function timeLeft() {
  return Math.max(0, order.dueAt - Date.now() - ahead);
}

function about({ state, instance, late, answer }, left) {
  if (state === 'unpaid') return left > 0 ? 'Waiting for your payment. It is cancelled in' : 'Time is up …';
  if (state === 'cancelled')
    return `Cancelled on ${instance}. The deadline was found ${late.toLocaleString('en')} ms after its time. It is too late to pay.`;
  return `Paid on ${instance}. ${ANSWERS[answer] ?? ''}`;
}

/** What cancel() answered to the payment. */
const ANSWERS = {
  cancelled: 'cancel() answered “cancelled”: no handler is ever called.',
  fired: 'cancel() answered “fired”: the deadline came, too, but its handler finds a paid order, and does nothing.',
};
