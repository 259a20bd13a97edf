/**
 * A base class whose objects refuse unknown properties: without it, `session.visits = 1` would be lost silently. Such
 * an assignment walks up the prototype chain and meets the proxy here, which throws.
 */
export const NoExpandoProperties = function () {} as unknown as new () => object;
NoExpandoProperties.prototype = new Proxy(Object.prototype, {
  set(_target, property): never {
    throw new TypeError(
      `A session keeps attributes, not properties: use session.setAttribute('${String(property)}', value)`,
    );
  },
});
