import type { FastifyInstance } from 'fastify'
import type { Description } from './description.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** A described operation at one of its paths, which is written as OpenAPI has it: `/media/{name}`. */
export interface Described {
  readonly method: (typeof methods)[number]
  readonly path: string
  readonly description: Description
}

export interface Descriptions {
  /** Throws where a route was added without a description. */
  all(): readonly Described[]
}

/**
 * Gathers the descriptions of the routes that are added from now on until `close`. A path with a slash behind it is
 * the same as without (docs/interface.md L1), and is left out.
 */
export function collectDescriptions(app: FastifyInstance): Descriptions & { close(): void } {
  const described: Described[] = []
  const missing: string[] = []
  let open = true
  app.addHook('onRoute', ({ url, method, config }) => {
    if (!open || url === '*') return
    const description = config?.description
    for (const name of [method].flat()) {
      const known = methods.find((one) => one === name)
      if (!description || !known) missing.push(`${name} ${url}`)
      else if (!url.endsWith('/') && (known !== 'HEAD' || description.head)) {
        described.push({ method: known, path: url.replaceAll(/:(\w+)/g, '{$1}'), description })
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
