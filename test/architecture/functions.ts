import { parseSync, visitorKeys } from 'oxc-parser'
import { read } from './sources.ts'

export interface NamedFunction {
  readonly file: string
  readonly name: string
  readonly line: number
  readonly lines: number
  /** Whether it is inside another function, where no symbol search finds it. */
  readonly isNested: boolean
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
}

/**
 * The functions of a file that have a name: declarations, variables and members that are initialized with a function, methods of classes
 * and of objects. Constructors are no functions of their own.
 */
export function functionsOf(file: string): NamedFunction[] {
  const text = read(file)
  const found: NamedFunction[] = []
  const lineOf = (offset: number) => text.slice(0, offset).split('\n').length

  function visit(node: Node, isNested: boolean): void {
    const named = namedFunction(node)
    if (named !== null) {
      const line = lineOf(node.start)
      found.push({ file, name: named, line, lines: lineOf(node.end) - line + 1, isNested })
    }
    const inside = isNested || isFunction(node)
    for (const child of childrenOf(node)) visit(child, inside)
  }
  visit(parseSync(file, text).program, false)
  return found
}

/** The name of the function that a node declares, or null. */
function namedFunction(node: Node): string | null {
  const { id, key, value, init, kind } = node as Node & Readonly<Record<string, unknown>>
  switch (node.type) {
    case 'FunctionDeclaration':
      return nameOf(id)
    case 'VariableDeclarator':
      return isFunction(init) ? nameOf(id) : null
    case 'MethodDefinition':
    case 'PropertyDefinition':
    case 'Property':
      return isFunction(value) && kind !== 'constructor' ? nameOf(key) : null
    default:
      return null
  }
}

const nameOf = (node: unknown): string | null =>
  typeof node === 'object' && node !== null && 'name' in node && typeof node.name === 'string'
    ? node.name
    : null

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

const isFunction = (value: unknown): boolean =>
  isNode(value) &&
  ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'].includes(value.type)

const childrenOf = (node: Node): Node[] =>
  (visitorKeys[node.type] ?? [])
    .flatMap((key) => (node as Node & Readonly<Record<string, unknown>>)[key])
    .filter(isNode)
