import type { FastifyInstance } from 'fastify'
import type { OperationDescription } from './operation-description.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** A described operation at one of its paths, which is written as OpenAPI has it: `/media/{name}`. */
export interface DescribedOperation {
  readonly method: (typeof methods)[number]
  readonly path: string
  readonly description: OperationDescription
  /** A HEAD that is the GET of the same description without its body. */
  readonly isHeadOfGet: boolean
}

export interface OperationList {
  /** Throws where a route was added without a description. */
  all(): readonly DescribedOperation[]
}

/**
 * Gathers the descriptions of the routes that are added from now on until `close`. A path with a slash behind it is
 * the same as without (docs/interface.md L1), and is left out; what OPTIONS answers is told once for all.
 */
export function collectOperations(app: FastifyInstance): OperationList & { close(): void } {
  const described: DescribedOperation[] = []
  const missing: string[] = []
  let open = true
  app.addHook('onRoute', ({ url, method, config }) => {
    if (!open || url === '*') return
    const description = config?.description
    const path = url.replaceAll(/:(\w+)/g, '{$1}')
    for (const name of [method].flat()) {
      if (name === 'OPTIONS') continue
      const known = methods.find((one) => one === name)
      if (!description || !known) {
        missing.push(`${name} ${url}`)
        continue
      }
      const isHeadOfGet =
        name === 'HEAD' && described.some((one) => one.path === path && one.description === description)
      if (!url.endsWith('/') && (!isHeadOfGet || description.head)) {
        described.push({ method: known, path, description, isHeadOfGet })
      }
    }
  })
  return {
    all() {
      if (missing.length > 0) throw new Error(`These routes need a description: ${missing.join(', ')}`)
      return described
    },
    close() {
      open = false
    },
  }
}
