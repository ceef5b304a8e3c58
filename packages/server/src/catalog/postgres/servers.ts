import type { ClientConfig } from 'pg'

/** The servers that a URL names: a primary and its replicas. After a failover, another one is the primary. */
export interface Servers {
  readonly count: number
  /** The server to which new connections are opened. */
  current(): ClientConfig
  /** Selects the next server if this one is still selected. */
  skip(failed: ClientConfig): void
}

export function selectServer(servers: readonly ClientConfig[]): Servers {
  let selected = 0
  return {
    count: servers.length,
    current: () => servers[selected] ?? {},
    skip(failed) {
      if (servers[selected] === failed) selected = (selected + 1) % servers.length
    },
  }
}
