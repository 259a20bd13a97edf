// `@nest-session/core/swagger`: sessions in the OpenAPI document of an application. Needs the package @nestjs/swagger.
export { documentSession } from './openapi/document-session.js';
