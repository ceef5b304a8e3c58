import { readFileSync } from 'node:fs'
import * as sdk from '@aws-sdk/client-s3'
import { expect, test } from 'vitest'
import { operationOf } from './s3-operations.ts'

/** Parameters that the SDK adds by the input of an operation, besides those of its path. */
const parametersOfInput: Readonly<Record<string, string>> = {
  AbortMultipartUpload: 'uploadId=1',
  CompleteMultipartUpload: 'uploadId=1',
  GetBucketAnalyticsConfiguration: 'id=1',
  GetBucketIntelligentTieringConfiguration: 'id=1',
  GetBucketInventoryConfiguration: 'id=1',
  GetBucketMetricsConfiguration: 'id=1',
  GetObject: 'partNumber=1&response-expires=0&versionId=null',
  GetObjectAnnotation: 'annotationName=a',
  HeadObject: 'partNumber=1',
  ListMultipartUploads: 'prefix=&delimiter=%2F&max-uploads=1',
  ListObjects: 'prefix=&delimiter=&marker=&encoding-type=url',
  ListObjectsV2: 'prefix=&delimiter=&start-after=&fetch-owner=true',
  ListObjectVersions: 'prefix=&key-marker=',
  ListParts: 'uploadId=1&max-parts=1',
  UploadPart: 'partNumber=1&uploadId=1',
  UploadPartCopy: 'partNumber=1&uploadId=1',
}

/** Those of other services: of directory buckets, and of functions that read objects. */
const ofOtherServices = ['ListDirectoryBuckets', 'WriteGetObjectResponse']

/** Each operation that the SDK knows, with its method and path. */
function* operationsOfSdk(): Generator<readonly [name: string, method: string, path: string]> {
  for (const [name, schema] of Object.entries(sdk)) {
    if (!name.endsWith('$') || !Array.isArray(schema)) continue
    const [, , operation, traits] = schema
    if (typeof traits !== 'object' || traits === null || !('http' in traits)) continue
    const [method, path] = Array.isArray(traits.http) ? traits.http : []
    if (typeof operation === 'string' && !ofOtherServices.includes(operation))
      yield [operation, `${method}`, `${path}`]
  }
}

/** The names of the operations that SP4 has. */
function namesOfContract(): readonly string[] {
  const contract = readFileSync(new URL('../../../../docs/interface.md', import.meta.url), 'utf8')
  const [, rule = ''] = /\n- \*\*SP4\*\* (.*?) Every other operation/.exec(contract) ?? []
  return [...new Set(rule.match(/\b[A-Z][a-z]+[A-Z]\w+/g))]
}

test('SP4 each operation of the SDK is found by its name, and those that are not implemented are named as S3 names them', () => {
  const operations = [...operationsOfSdk()]
  expect(operations.length).toBeGreaterThan(100)
  const implemented: string[] = []
  for (const [name, method, path] of operations) {
    const [, ofPath = ''] = path.split('?')
    const target = {
      bucket: name === 'ListBuckets' ? null : 'b',
      key: path.includes('{Key+}') ? 'k' : null,
      query: new URLSearchParams(`${ofPath}&${parametersOfInput[name] ?? ''}`),
    }
    const found = operationOf(method, target, /Copy$|^Copy/.test(name))
    expect('name' in found ? found.name : found.unknown).toBe(name)
    if ('name' in found) implemented.push(name)
  }
  expect(implemented.sort()).toEqual([...namesOfContract()].sort())
})

test('SP4 a parameter without a value, as those that select operations, is never ignored by a request that changes something', () => {
  for (const [method, key] of [
    ['PUT', null],
    ['DELETE', null],
    ['PUT', 'k'],
    ['DELETE', 'k'],
  ] as const)
    expect(operationOf(method, { bucket: 'b', key, query: new URLSearchParams('later') }, false)).toEqual({
      unknown: expect.stringMatching(/ with the parameter later$/),
    })
  const query = new URLSearchParams('later&X-Amz-Security-Token=&x-id=DeleteObject')
  query.delete('later')
  expect(operationOf('DELETE', { bucket: 'b', key: 'k', query }, false)).toEqual({ name: 'DeleteObject' })
  const read = { bucket: 'b', key: 'k', query: new URLSearchParams('later') }
  expect(operationOf('GET', read, false)).toEqual({ name: 'GetObject' })
})
