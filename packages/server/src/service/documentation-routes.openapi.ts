import { Type } from 'typebox'
import { exampleBase, type OperationDescription, type ResponseHeader } from '../http/openapi/description.ts'
import { ProblemParams } from '../http/openapi/parameters.ts'

const documentHeaders: readonly ResponseHeader[] = ['ETag', 'Cache-Control', 'X-Content-Type-Options']

const pageHeaders: readonly ResponseHeader[] = [...documentHeaders, 'Content-Security-Policy']

const notModified = 'The entity tag in `If-None-Match` is the current one.'

export const interfaceDocument: OperationDescription = {
  operationId: 'interfaceDocument',
  tag: 'Operations',
  summary: 'Get the OpenAPI document',
  description: 'Returns the OpenAPI 3.1 document with the base URL and the envelope of this deployment.',
  rules: 'D1',
  needs: 'nothing',
  headers: ['If-None-Match'],
  responses: {
    200: {
      description: 'The document.',
      headers: documentHeaders,
      content: { 'application/json': { schema: Type.Object({}, { description: 'An OpenAPI document.' }) } },
    },
    304: { description: notModified, headers: documentHeaders },
  },
  problems: [],
  curl: `curl ${exampleBase}/openapi.json`,
}

export const interfacePage: OperationDescription = {
  operationId: 'interfacePage',
  tag: 'Operations',
  summary: 'Get the documentation',
  description: 'Returns one HTML page. It has no scripts and loads nothing.',
  rules: 'D2',
  needs: 'nothing',
  headers: ['If-None-Match'],
  responses: {
    200: {
      description: 'The page.',
      headers: pageHeaders,
      content: { 'text/html': { schema: Type.String() } },
    },
    304: { description: notModified, headers: pageHeaders },
  },
  problems: [],
  curl: `curl ${exampleBase}/docs`,
}

export const explainProblem: OperationDescription = {
  operationId: 'explainProblem',
  tag: 'Operations',
  summary: 'Explain a problem',
  description:
    'Returns the cause of a problem and what to do about it. The `type` of a problem links here. Plain text, or HTML for clients that accept it.',
  rules: 'P2',
  needs: 'nothing',
  path: ProblemParams,
  responses: {
    200: {
      description: 'The cause and the cure.',
      headers: ['Cache-Control', 'Vary', 'Content-Security-Policy', 'X-Content-Type-Options'],
      content: {
        'text/plain': { schema: Type.String() },
        'text/html': { schema: Type.String() },
      },
    },
  },
  problems: ['route-unknown'],
  curl: `curl ${exampleBase}/problems/page-malformed`,
}
