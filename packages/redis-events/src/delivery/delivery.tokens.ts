/** The `DeliveryOptions` of the module. */
export const DELIVERY_OPTIONS = Symbol('DELIVERY_OPTIONS');
/** The `ConsumerIdentity` of this instance. */
export const CONSUMER_IDENTITY = Symbol('CONSUMER_IDENTITY');
export const DELIVERY_PACE = Symbol('DELIVERY_PACE');
export const EVENT_RULES = Symbol('EVENT_RULES');
/** Scripts are commands of a connection: makes those of requests on the one that a request has. */
export const REQUEST_STREAM_SCRIPTS = Symbol('REQUEST_STREAM_SCRIPTS');
