import { Type } from 'typebox'
import { type Description, exampleBase } from '../openapi/description.ts'
import type { AnswerHeader } from '../openapi/headers.ts'

const headers: readonly AnswerHeader[] = ['ETag', 'Cache-Control', 'X-Content-Type-Options']
const pageHeaders: readonly AnswerHeader[] = [...headers, 'Content-Security-Policy']
const unchanged = 'The client has the present one.'

export const interfaceDocument: Description = {
  operationId: 'interfaceDocument',
  tag: 'Operations',
  summary: 'This description, for programs',
  description: 'OpenAPI 3.1, with the base URL and the envelope of this deployment.',
  rules: 'D1',
  needs: 'nothing',
  headers: ['If-None-Match'],
  answers: {
    200: {
      description: 'The document.',
      headers,
      content: { 'application/json': { schema: Type.Object({}, { description: 'An OpenAPI document.' }) } },
    },
    304: { description: unchanged, headers },
  },
  problems: [],
  curl: `curl ${exampleBase}/openapi.json`,
}

export const interfacePage: Description = {
  operationId: 'interfacePage',
  tag: 'Operations',
  summary: 'This description, for people',
  description: 'A page of HTML that needs nothing else: no script, no font, no other host.',
  rules: 'D2',
  needs: 'nothing',
  headers: ['If-None-Match'],
  answers: {
    200: {
      description: 'The page.',
      headers: pageHeaders,
      content: { 'text/html': { schema: Type.String() } },
    },
    304: { description: unchanged, headers: pageHeaders },
  },
  problems: [],
  curl: `curl ${exampleBase}/docs`,
}
