import type { Socket } from 'node:net'
import type { BaseLogger } from 'pino'
import { Fault } from '../core/faults.ts'
import { createLingeringClose } from './client-connections.ts'
import type { Metrics } from './metrics.ts'
import type { FaultSerializer } from './problems.ts'
import { newRequestId } from './request-ids.ts'

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
  readonly requestId: string
  refused: number
}

/** Refuses connections beyond the limits. */
export class Refuser {
  readonly #log: Pick<BaseLogger, 'warn'>
  readonly #metrics: Pick<Metrics, 'refusedConnections'>
  readonly #reports = new Map<RefusalReason, Report>()
  readonly #sendAndClose = createLingeringClose()

  constructor(log: Pick<BaseLogger, 'warn'>, metrics: Pick<Metrics, 'refusedConnections'>) {
    this.#log = log
    this.#metrics = metrics
  }

  /** Counts the refusal, and returns the fault for its response. */
  report(socket: Socket, reason: RefusalReason): Fault {
    return this.#count(socket, reason).fault
  }

  /** The same, and sends the response in the form of its server and closes the connection. */
  refuse(socket: Socket, reason: RefusalReason, serializeFault: FaultSerializer): void {
    const { fault, requestId } = this.#count(socket, reason)
    this.#sendAndClose(socket, serializeFault(fault, requestId).bytes)
  }

  #count(socket: Socket, reason: RefusalReason): Report {
    this.#metrics.refusedConnections.inc({ reason })
    const report = this.#reports.get(reason) ?? this.#startReport(reason, socket.remoteAddress)
    report.refused += 1
    return report
  }

  #startReport(reason: RefusalReason, peer: string | undefined): Report {
    const requestId = newRequestId()
    const { detail, message } = texts[reason]
    const fault = new Fault('connections-too-many', detail)
    const report = { fault, requestId, refused: 0 }
    this.#reports.set(reason, report)
    this.#log.warn({ requestId, peer }, message)
    setTimeout(() => {
      this.#reports.delete(reason)
      if (report.refused > 1)
        this.#log.warn({ requestId, refused: report.refused }, 'connections were refused')
    }, reportInterval).unref()
    return report
  }
}
