import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { BaseLogger } from 'pino'
import { Fault } from '../core/faults.ts'
import { createLingeringClose, serializeProblem } from './connections.ts'
import type { Metrics } from './metrics.ts'

/** The limit that a connection exceeds. */
export type RefusalReason = 'total' | 'address'

/** Refusals within this time share one log line and one request id. Milliseconds. */
const reportInterval = 10_000

const texts: Readonly<Record<RefusalReason, { readonly detail: string; readonly message: string }>> = {
  total: {
    detail: 'The service has as many open connections as it accepts.',
    message: 'connections are refused: MEDIABUCKET_MAX_CONNECTIONS is reached',
  },
  address: {
    detail: 'Your address has as many open connections as the service accepts from one address.',
    message:
      'connections are refused: their address has reached MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS; if it is your reverse proxy, add it to MEDIABUCKET_TRUSTED_PROXIES',
  },
}

/** One log line for many refusals. */
interface Report {
  readonly fault: Fault
  readonly response: Buffer
  refused: number
}

export interface Refuser {
  /** Counts the refusal, and returns the fault for its response. */
  readonly report: (socket: Socket, reason: RefusalReason) => Fault
  /** The same, and sends the response and closes the connection. */
  readonly refuse: (socket: Socket, reason: RefusalReason) => void
}

export function createRefuser(
  baseUrl: string,
  log: Pick<BaseLogger, 'warn'>,
  metrics: Pick<Metrics, 'refusedConnections'>,
): Refuser {
  const reports = new Map<RefusalReason, Report>()
  const sendAndClose = createLingeringClose()

  function reportOf(reason: RefusalReason, peer: string | undefined): Report {
    const known = reports.get(reason)
    if (known) return known
    const requestId = randomUUID()
    const { detail, message } = texts[reason]
    const fault = new Fault('connections-too-many', detail)
    const report = { fault, response: serializeProblem(fault, baseUrl, requestId).bytes, refused: 0 }
    reports.set(reason, report)
    log.warn({ requestId, peer }, message)
    setTimeout(() => {
      reports.delete(reason)
      if (report.refused > 1) log.warn({ requestId, refused: report.refused }, 'connections were refused')
    }, reportInterval).unref()
    return report
  }

  function count(socket: Socket, reason: RefusalReason): Report {
    metrics.refusedConnections.inc({ reason })
    const report = reportOf(reason, socket.remoteAddress)
    report.refused += 1
    return report
  }

  return {
    report: (socket, reason) => count(socket, reason).fault,
    refuse: (socket, reason) => sendAndClose(socket, count(socket, reason).response),
  }
}
