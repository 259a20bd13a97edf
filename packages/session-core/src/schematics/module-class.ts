import { posix } from 'node:path';
import type ts from 'typescript';
import type { Application } from './application.js';
import type { ApplicationSources, Insertion } from './application-sources.js';
import { startCall } from './program-start.js';
import { Refusal } from './refusal.js';

/** A class with `@Module()`, whose lists can be added to. */
export class ModuleClass {
  readonly path: string;

  constructor(
    private readonly sources: ApplicationSources,
    readonly name: string,
    private readonly metadata: ts.ObjectLiteralExpression,
  ) {
    this.path = metadata.getSourceFile().fileName;
  }

  /** The root module: the class that the program gives to NestFactory, or that of the file which the user names. */
  static root(application: Application, file?: string): ModuleClass {
    if (file !== undefined) return ModuleClass.in(application, file);
    const { sources, sourceRoot } = application;
    const call = startCall(application);
    if (!call) throw new Refusal(`No file of ${sourceRoot} calls NestFactory.create()`);
    const path = call.getSourceFile().fileName;
    const name = classGiven(sources, call);
    const declaration = name && sources.findClass(path, name);
    if (!declaration)
      throw new Refusal(
        `${path.slice(1)} gives ${call.arguments[0]?.getText()} to NestFactory, which is no known class`,
      );
    return ModuleClass.of(sources, declaration);
  }

  /** That of the only class with `@Module()` in a file. */
  static in({ sources, tree }: Application, file: string): ModuleClass {
    if (!tree.exists(file)) throw new Refusal(`There is no file ${file}`);
    const classes = sources
      .parse(posix.join('/', file))
      .statements.filter((each) => sources.ts.isClassDeclaration(each));
    const modules = classes.filter((each) => decoratorOf(sources, each));
    if (modules.length !== 1) throw new Refusal(`${file} has ${modules.length} classes with @Module()`);
    return ModuleClass.of(sources, modules[0]!);
  }

  static of(sources: ApplicationSources, declaration: ts.ClassDeclaration): ModuleClass {
    const name = declaration.name?.text ?? 'default';
    const path = declaration.getSourceFile().fileName.slice(1);
    const decorator = decoratorOf(sources, declaration);
    if (!decorator) throw new Refusal(`The class ${name} in ${path} has no @Module()`);
    const [metadata] = decorator.arguments;
    if (!metadata || !sources.ts.isObjectLiteralExpression(metadata))
      throw new Refusal(`The @Module() of ${name} in ${path} is not given an object in place`);
    return new ModuleClass(sources, name, metadata);
  }

  /** What makes an expression one more element of `imports` or `providers`; nothing if it is one already. */
  added(list: 'imports' | 'providers', element: string): Insertion[] {
    const { ts } = this.sources;
    const property = this.metadata.properties.find((each) => each.name?.getText() === list);
    if (!property) return [this.#newList(list, element)];
    if (!ts.isPropertyAssignment(property))
      throw new Refusal(`The ${list} of ${this.name} in ${this.path.slice(1)} are not written in place`);
    const { initializer } = property;
    // What a variable or a function gives stays as it is.
    if (!ts.isArrayLiteralExpression(initializer)) {
      const [start, end] = [initializer.getStart(), initializer.getEnd()];
      return [
        { at: start, text: '[...(' },
        { at: end, text: `), ${element}]` },
      ];
    }
    const last = initializer.elements.at(-1);
    if (!last) return [{ at: initializer.getEnd() - 1, text: element }];
    if (initializer.elements.some((each) => each.getText() === element)) return [];
    // As the last one is separated from what is before it.
    return [{ at: last.getEnd(), text: `,${/^\s*/.exec(last.getFullText())?.[0] || ' '}${element}` }];
  }

  #newList(list: string, element: string): Insertion {
    const [first] = this.metadata.properties;
    if (!first) return { at: this.metadata.getStart() + 1, text: ` ${list}: [${element}] ` };
    const start = first.getStart();
    const space = /\s*$/.exec(first.getSourceFile().text.slice(0, start))?.[0] || ' ';
    return { at: start, text: `${list}: [${element}],${space}` };
  }
}

function decoratorOf({ ts }: ApplicationSources, declaration: ts.ClassDeclaration): ts.CallExpression | undefined {
  const calls = (ts.getDecorators(declaration) ?? []).map(({ expression }) => expression);
  return calls.filter((each) => ts.isCallExpression(each)).find(({ expression }) => expression.getText() === 'Module');
}

/** `AppModule`, also of `AppModule.forRoot(...)` and `await AppModule.register()`. */
function classGiven({ ts }: ApplicationSources, { arguments: [given] }: ts.CallExpression): string | undefined {
  let node: ts.Node | undefined = given;
  if (node && ts.isAwaitExpression(node)) node = node.expression;
  if (node && ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression))
    node = node.expression.expression;
  return node && ts.isIdentifier(node) ? node.text : undefined;
}
