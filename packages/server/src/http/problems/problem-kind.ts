import type { FaultCode } from '../../core/fault.ts'

/** What all problems with one code share; titles, causes and cures are shown at `/problems/{code}`. */
export interface ProblemKind {
  readonly status: number
  readonly title: string
  readonly cause: string
  readonly cure: string
}

export type ProblemKinds = Readonly<Partial<Record<FaultCode, ProblemKind>>>
