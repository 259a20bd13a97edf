import { setTimeout } from 'node:timers/promises';

// Milliseconds.
const USUAL = 300;
const SLOW = 1500;

/** Stands for a database that both sides ask for the price of an item, before they put it into the cart. */
export function askForPrice(isSlow: boolean): Promise<void> {
  return setTimeout(isSlow ? SLOW : USUAL);
}
