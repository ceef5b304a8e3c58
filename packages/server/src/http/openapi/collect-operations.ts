import type { FastifyInstance } from 'fastify'
import type { OperationDescription } from './operation-description.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** A described operation with one of its paths, in OpenAPI's notation: `/media/{name}`. */
export interface DescribedOperation {
  readonly method: (typeof methods)[number]
  readonly path: string
  readonly description: OperationDescription
  /** Whether it is the HEAD of a GET with the same description. */
  readonly isHeadOfGet: boolean
}

export interface OperationList {
  /** Throws where a route has no description. */
  all(): readonly DescribedOperation[]
}

/**
 * Collects the descriptions of the routes that are added from now on until `close`. Leaves out paths with a trailing
 * slash, which equal those without (docs/interface.md L1), and OPTIONS, which is the same everywhere.
 */
export function collectOperations(app: FastifyInstance): OperationList & { close(): void } {
  const operations: DescribedOperation[] = []
  const undescribed: string[] = []
  let isCollecting = true
  app.addHook('onRoute', ({ url, method, config }) => {
    if (!isCollecting || url === '*') return
    const description = config?.description
    const path = url.replaceAll(/:(\w+)/g, '{$1}')
    for (const name of [method].flat()) {
      if (name === 'OPTIONS') continue
      const known = methods.find((one) => one === name)
      if (!description || !known) {
        undescribed.push(`${name} ${url}`)
        continue
      }
      const isHeadOfGet =
        name === 'HEAD' && operations.some((one) => one.path === path && one.description === description)
      if (!url.endsWith('/') && (!isHeadOfGet || description.head)) {
        operations.push({ method: known, path, description, isHeadOfGet })
      }
    }
  })
  return {
    all() {
      if (undescribed.length > 0)
        throw new Error(`These routes need a description: ${undescribed.join(', ')}`)
      return operations
    },
    close() {
      isCollecting = false
    },
  }
}
