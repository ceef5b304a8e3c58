import type { Problem } from '../problem.ts'
import { type AnswerDetails, AnswerError } from './answer-error.ts'

/** The service refused and sent a problem (RFC 9457). Programs compare `problem.code`. */
export class ProblemError extends AnswerError {
  override name = 'ProblemError'
  readonly problem: Problem

  constructor(details: AnswerDetails, problem: Problem) {
    super(details, problem.detail || problem.title || problem.type)
    this.problem = problem
  }
}
