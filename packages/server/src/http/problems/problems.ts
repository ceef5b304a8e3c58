import type { FaultCode } from '../../core/fault.ts'
import { itemProblems } from './item-problems.ts'
import type { ProblemKind } from './problem-kind.ts'
import { requestProblems } from './request-problems.ts'
import { resumableUploadProblems } from './resumable-upload-problems.ts'
import { serviceProblems } from './service-problems.ts'
import { tokenProblems } from './token-problems.ts'
import { uploadProblems } from './upload-problems.ts'

/** Every problem that a response can carry, in the order of docs/problems.md (docs/interface.md P2). */
export const problemKinds: Readonly<Record<FaultCode, ProblemKind>> = {
  ...requestProblems,
  ...tokenProblems,
  ...itemProblems,
  ...uploadProblems,
  ...resumableUploadProblems,
  ...serviceProblems,
}
