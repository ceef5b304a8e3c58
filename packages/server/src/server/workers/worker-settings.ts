import type { Config } from '../../config/config.ts'

/** The settings of one worker: the workers share the limits of memory and of picture processes in equal parts. */
export function workerSettings(config: Config, port: number): Config {
  const share = (limit: number) => Math.ceil(limit / config.workers)
  return Object.freeze({
    ...config,
    port,
    cache: share(config.cache),
    variantProcesses: share(config.variantProcesses),
  })
}
