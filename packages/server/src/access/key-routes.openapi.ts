import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { KeyList, KeyObject, KeyParams } from '../http/openapi/key-schemas.ts'

const sampleKey = { id: '4k9m2x7c1v8q', state: 'signs', created_at: '2026-11-20T08:00:00.000Z' }

export const listKeys: OperationDescription = {
  operationId: 'listKeys',
  tag: 'Service',
  summary: 'List the keys that sign URLs',
  description: 'Returns the keys of the service, never their secrets.',
  rules: 'H12',
  needs: 'buckets:manage',
  responses: {
    200: {
      description: 'The keys.',
      headers: ['Cache-Control'],
      content: { 'application/json': { schema: KeyList, examples: { 'one key': { data: [sampleKey] } } } },
    },
  },
  problems: [],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/keys`,
}

export const rotateKeys: OperationDescription = {
  operationId: 'rotateKeys',
  tag: 'Service',
  summary: 'Create a key that signs URLs',
  description: 'Creates a key, which signs all new URLs. Those of earlier keys stay valid until they expire.',
  rules: 'H12',
  needs: 'buckets:manage',
  responses: {
    201: {
      description: 'The key.',
      headers: ['Cache-Control'],
      content: { 'application/json': { schema: KeyObject, examples: { 'the new key': sampleKey } } },
    },
  },
  problems: [],
  curl: `curl -X POST -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/keys`,
}

export const removeKey: OperationDescription = {
  operationId: 'removeKey',
  tag: 'Service',
  summary: 'Remove a key that signs URLs',
  description:
    'Removes a key. All URLs that it has signed are invalid from then on. If it is the newest key, a new one signs from then on.',
  rules: 'H12',
  needs: 'buckets:manage',
  path: KeyParams,
  responses: { 204: { description: 'The key is removed.' } },
  problems: ['key-unknown'],
  curl: `curl -X DELETE -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/keys/4k9m2x7c1v8q`,
}
