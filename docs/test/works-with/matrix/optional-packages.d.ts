// The declarations of @nestjs/graphql, @nestjs/apollo and @nestjs/terminus name types of packages that an application need not
// have.
declare module '@apollo/gateway' {
  export type GatewayConfig = unknown;
}

declare module 'ts-morph' {
  export type ClassDeclarationStructure = unknown;
  export type EnumDeclarationStructure = unknown;
  export type InterfaceDeclarationStructure = unknown;
  export type MethodDeclarationStructure = unknown;
  export type MethodSignatureStructure = unknown;
  export type OptionalKind<T> = T;
  export type ParameterDeclarationStructure = unknown;
  export type PropertyDeclarationStructure = unknown;
  export type PropertySignatureStructure = unknown;
  export type SourceFile = unknown;
  export type TypeAliasDeclarationStructure = unknown;
}
