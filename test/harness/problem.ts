import { expect } from 'vitest'
import { parseProblem } from './wire.ts'

/** Texts that no problem may contain: a token, a path of the server, a stack (docs/interface.md P3). */
const secrets = /mbkt_[0-9a-z]{8}|\/tmp\/|node_modules|\.[tj]s:\d+/

/** Asserts that a response is a problem with this status and code, and returns its body (docs/interface.md P1, P5). */
export async function expectProblem(response: Response, status: number, code: string) {
  const text = await response.text()
  expect([response.status, response.headers.get('content-type'), text]).toEqual([
    status,
    'application/problem+json',
    expect.stringContaining(`"code":"${code}"`),
  ])
  const problem = parseProblem(text)
  expect(problem).toMatchObject({ status, code, type: expect.stringMatching(`/problems/${code}$`) })
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(text).not.toMatch(secrets)
  return problem
}
