// `@nest-session/core/devalue` is a serializer for more types than JSON has. It needs the package `devalue`.
export { DevalueAttributeSerializer, type DevalueTypes } from './session/devalue-attribute.serializer.js';
