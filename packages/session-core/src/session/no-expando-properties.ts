/**
 * Assigning to a property that an object does not have, such as `session.visits = 1`, would be lost without a word. The
 * assignment walks up the prototypes until it gets to this base class, which refuses it.
 */
export const NoExpandoProperties = function () {} as unknown as new () => object;
NoExpandoProperties.prototype = new Proxy(Object.prototype, {
  set(_target, property): never {
    throw new TypeError(
      `A session keeps attributes, not properties: use session.setAttribute('${String(property)}', value)`,
    );
  },
});
