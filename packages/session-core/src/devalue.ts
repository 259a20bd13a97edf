// `@nest-session/core/devalue`: a serializer for more than JSON. Needs the package `devalue`.
export { DevalueAttributeSerializer, type DevalueTypes } from './session/devalue-attribute.serializer.js';
