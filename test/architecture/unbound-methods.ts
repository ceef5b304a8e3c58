import { join } from 'node:path'
import {
  isBindingElement,
  isCallExpression,
  isClassDeclaration,
  isIdentifier,
  isMethodDeclaration,
  isNonNullExpression,
  isPropertyAccessExpression,
  isSpreadAssignment,
  isTypeOfExpression,
  type Node,
  SyntaxKind,
} from 'typescript/unstable/ast'
import { API, type Checker, type Project, SymbolFlags, type Type, TypeFlags } from 'typescript/unstable/sync'
import { root } from './sources.ts'

/** A class whose methods use `this`. */
interface StatefulClass {
  readonly methods: ReadonlySet<string>
  readonly type: Type
  /** The symbols of the class and of its interfaces, which are the same whatever their type parameters are. */
  readonly symbols: ReadonlySet<number>
}

/** A place that takes methods off an object: all of them, with a spread, or the one that it names. */
interface Taking {
  readonly file: string
  readonly node: Node
  /** What the methods are taken off. */
  readonly from: Node
  readonly method: string | null
}

/**
 * The places of these files that take a method off an object that may be of a class, without a call: `{ ...blobs }`, `const { open } = blobs`
 * and `onEnd: queue.close`. The method then has no `this`. An object may be of each class that its type accepts.
 */
export function unboundMethods(files: readonly string[], tsconfig: string): string[] {
  const api = new API({ cwd: root })
  try {
    const project = api.updateSnapshot({ openProjects: [join(root, tsconfig)] }).getProjects()[0]
    if (project === undefined) throw new Error(`${tsconfig} is no project.`)
    return findUnbound(project, files)
  } finally {
    api.close()
  }
}

function findUnbound(project: Project, files: readonly string[]): string[] {
  const classes: StatefulClass[] = []
  const takings: Taking[] = []
  for (const file of files) {
    const source = project.program.getSourceFile(join(root, file))
    if (source === undefined) throw new Error(`The project does not contain ${file}.`)
    visit(source, (node) => {
      const methods = methodsWithThis(node)
      if (methods.size > 0) classes.push({ methods, ...typesOf(project.checker, node) })
      takings.push(...takingsOf(file, node))
    })
  }
  const named = new Set(classes.flatMap(({ methods }) => [...methods]))
  const candidates = takings.filter(({ method }) => method === null || named.has(method))
  const types = project.checker.getTypeAtLocation(candidates.map(({ from }) => from))
  return candidates.flatMap((taking, index) => {
    const type = types[index]
    return type !== undefined && mayBeOfOne(project.checker, type, taking.method, classes)
      ? [describe(taking)]
      : []
  })
}

function visit(node: Node, see: (node: Node) => void): void {
  see(node)
  node.forEachChild((child) => visit(child, see))
}

function methodsWithThis(node: Node): Set<string> {
  if (!isClassDeclaration(node)) return new Set()
  return new Set(
    node.members.flatMap((member) =>
      isMethodDeclaration(member) && isIdentifier(member.name) && usesThis(member) ? [member.name.text] : [],
    ),
  )
}

function usesThis(node: Node): boolean {
  let found = false
  visit(node, ({ kind }) => {
    found ||= kind === SyntaxKind.ThisKeyword
  })
  return found
}

function typesOf(checker: Checker, node: Node): Pick<StatefulClass, 'type' | 'symbols'> {
  const symbol = isClassDeclaration(node) && node.name ? checker.getSymbolAtLocation(node.name) : undefined
  if (symbol === undefined || !isClassDeclaration(node)) throw new Error('A class has no name.')
  const interfaces = (node.heritageClauses ?? [])
    .flatMap(({ types }) => [...types])
    .flatMap((each) => checker.getTypeAtLocation(each)?.getSymbol() ?? [])
    // Types such as Pick<…> are of one symbol together.
    .filter(({ flags }) => (flags & (SymbolFlags.Interface | SymbolFlags.Class)) !== 0)
    .map(({ id }) => id)
  return { type: checker.getDeclaredTypeOfSymbol(symbol), symbols: new Set([symbol.id, ...interfaces]) }
}

function takingsOf(file: string, node: Node): Taking[] {
  if (isSpreadAssignment(node)) return [{ file, node, from: node.expression, method: null }]
  if (isPropertyAccessExpression(node) && isIdentifier(node.name) && !isCalled(node))
    return [{ file, node, from: node.expression, method: node.name.text }]
  const named = isBindingElement(node) ? (node.propertyName ?? node.name) : undefined
  return named !== undefined && isIdentifier(named) && node.parent.kind === SyntaxKind.ObjectBindingPattern
    ? [{ file, node, from: node.parent, method: named.text }]
    : []
}

/** Whether a method is called on its object, bound, or tested for its presence. */
function isCalled(node: Node): boolean {
  const { parent } = node
  if (isCallExpression(parent)) return parent.expression === node
  if (isPropertyAccessExpression(parent)) return parent.name.text === 'bind'
  return isTypeOfExpression(parent) || (isNonNullExpression(parent) && isCalled(parent))
}

function mayBeOfOne(
  checker: Checker,
  type: Type,
  method: string | null,
  classes: readonly StatefulClass[],
): boolean {
  if ((type.flags & TypeFlags.Any) !== 0) return false
  const taken = method === null ? checker.getPropertiesOfType(type).map(({ name }) => name) : [method]
  const symbol = type.getSymbol()?.id
  return classes.some(
    (each) =>
      taken.some((name) => each.methods.has(name)) &&
      ((symbol !== undefined && each.symbols.has(symbol)) || checker.isTypeAssignableTo(each.type, type)),
  )
}

function describe({ file, node }: Taking): string {
  return `${file}: ${node.getText()}`
}
