import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { Fault, type FaultCode } from '../core/faults.ts'
import { problemKinds } from './problem-kinds.ts'
import { createFaultReporter } from './problems.ts'
import { emptyLine } from './request-log.ts'

/** The levels at which a fault is logged. */
function levelsOf(fault: Fault): string[] {
  const levels: string[] = []
  const report = createFaultReporter({
    limits: { countAuthFailure: (one) => one, countToken: () => null },
    countStorageError: () => undefined,
    log: { error: () => levels.push('error'), warn: () => levels.push('warn') },
  })
  report(fault, { id: 'id', request: new IncomingMessage(new Socket()), line: emptyLine() })
  return levels
}

/** Problems of status 5xx that are no errors of the service. */
const others: Partial<Record<FaultCode, readonly string[]>> = {
  // Others use the machine or the catalog; the client tries again.
  'catalog-busy': ['warn'],
  'variants-busy': ['warn'],
  overloaded: ['warn'],
  // A wrong request.
  'method-unsupported': [],
  'transfer-coding-unsupported': [],
  'http-version-unsupported': [],
  // A limit that the operator has set, or a stop.
  'quota-exceeded': [],
  'token-limit-exceeded': [],
  'storage-full': [],
  'connections-too-many': [],
  'read-only': [],
  'shutting-down': [],
  // Logged when its reasons change.
  'not-ready': [],
  // Logged by the scan, with its reason.
  'scanner-unavailable': [],
}

test('O3 errors of the service are logged as errors, temporary refusals as warnings, and other refusals have their line of the request only', () => {
  for (const [code, { status }] of Object.entries(problemKinds)) {
    const expected = others[code as FaultCode] ?? (status >= 500 ? ['error'] : [])
    expect(levelsOf(new Fault(code as FaultCode, 'x')), code).toEqual(expected)
  }
})

test.each(['storage-full', 'catalog-busy', 'variants-busy', 'overloaded'] as const)(
  'O3 %s that an error of the system, the database or a program causes is logged as an error',
  (code) => {
    expect(levelsOf(new Fault(code, 'x', { cause: new Error('ENOSPC') }))).toEqual(['error'])
  },
)
