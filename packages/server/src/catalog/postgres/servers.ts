import type { ClientConfig } from 'pg'

/** The servers that a URL names: a primary and its replicas. After a failover, another one is the primary. */
export interface Servers {
  readonly count: number
  /** The server to which new connections are opened. */
  current(): ClientConfig
  /** Selects the next server if this one is still selected. */
  skip(failed: ClientConfig): void
  /**
   * Whether no server with a later timeline is known. A promotion begins a timeline with a higher number, so a writable server with
   * an earlier one is a former primary. With a single server, always true: its address may lead to a new installation.
   */
  isLatest(timeline: number): boolean
}

export function selectServer(servers: readonly ClientConfig[]): Servers {
  let selected = 0
  let latest = 0
  return {
    count: servers.length,
    current: () => servers[selected] ?? {},
    skip(failed) {
      if (servers[selected] === failed) selected = (selected + 1) % servers.length
    },
    isLatest(timeline) {
      latest = Math.max(latest, timeline)
      return timeline === latest || servers.length === 1
    },
  }
}
