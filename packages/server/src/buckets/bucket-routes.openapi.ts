import { jsonBodyProblems } from '../http/bodies.ts'
import {
  BucketList,
  BucketListQuery,
  BucketParams,
  BucketRemovalQuery,
  BucketSettingsBody,
  CreatedBucket,
  ManagedBucket,
  NewBucketBody,
} from '../http/openapi/bucket-schemas.ts'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { sampleBucket, sampleCreatedToken, sampleManagedBucket } from '../http/openapi/samples.ts'
import { CreatedToken, NewTokenBody } from '../http/openapi/token-schemas.ts'

export const patchTypes = ['application/merge-patch+json', 'application/json']

const curl = `curl -H "Authorization: Bearer $SERVICE_TOKEN"`
const json = "-H 'Content-Type: application/json'"

export const listBuckets: OperationDescription = {
  operationId: 'listBuckets',
  tag: 'Buckets',
  summary: 'List the buckets',
  description: 'Returns buckets of the service in an order, and the totals of all of them.',
  rules: 'BK1 to BK3',
  needs: 'buckets:manage',
  query: BucketListQuery,
  responses: {
    200: {
      description: 'The buckets.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: BucketList,
          examples: {
            'one bucket': {
              data: [sampleManagedBucket],
              totals: { buckets: 1, items: sampleBucket.items, bytes: sampleBucket.bytes },
              next_cursor: null,
            },
          },
        },
      },
    },
  },
  problems: ['parameter-malformed', 'cursor-malformed'],
  curl: `${curl} '${exampleBase}/api/buckets?order=bytes&limit=20'`,
}

export const createBucket: OperationDescription = {
  operationId: 'createBucket',
  tag: 'Buckets',
  summary: 'Create a bucket',
  description:
    'Creates a bucket with its settings, and in the same transaction its first token. Only this response, and that of a repetition with the same `Idempotency-Key`, has the token itself.',
  rules: 'BK4, BK5, T6, T9',
  needs: 'buckets:manage',
  headers: ['Idempotency-Key'],
  body: {
    description: 'The name, the settings and the first token of the bucket.',
    content: {
      'application/json': {
        schema: NewBucketBody,
        examples: {
          'for a customer, with a quota of 1 GB': {
            name: sampleManagedBucket.name,
            max_bytes: 1_000_000_000,
            private: true,
            token: { name: 'app', scopes: ['media:read', 'media:write', 'media:delete'] },
          },
        },
      },
    },
  },
  responses: {
    201: {
      description: 'Created, also by an earlier request with the same key.',
      headers: ['Cache-Control', 'ETag', 'Location'],
      content: {
        'application/json': {
          schema: CreatedBucket,
          examples: { 'with a token': { ...sampleManagedBucket, token: sampleCreatedToken } },
        },
      },
    },
  },
  problems: [
    ...jsonBodyProblems,
    ...(['bucket-exists', 'bucket-unknown', 'idempotency-key-malformed', 'idempotency-key-reused'] as const),
    'storage-full',
  ],
  curl: `${curl} ${json} \\
  -d '{"name": "${sampleManagedBucket.name}", "max_bytes": 1000000000, "token": {"scopes": ["media:read", "media:write"]}}' ${exampleBase}/api/buckets`,
}

export const findBucket: OperationDescription = {
  operationId: 'findBucket',
  tag: 'Buckets',
  summary: 'Get a bucket by its name',
  description:
    'Returns the contents, the quota and the settings of a bucket. Its `ETag` identifies the settings.',
  rules: 'BK1, BK6',
  needs: 'buckets:manage',
  path: BucketParams,
  responses: {
    200: {
      description: 'The bucket.',
      headers: ['Cache-Control', 'ETag'],
      content: {
        'application/json': { schema: ManagedBucket, examples: { bucket: sampleManagedBucket } },
      },
    },
  },
  problems: ['bucket-unknown'],
  curl: `${curl} ${exampleBase}/api/buckets/${sampleManagedBucket.name}`,
}

export const setBucket: OperationDescription = {
  operationId: 'setBucket',
  tag: 'Buckets',
  summary: 'Change the settings of a bucket',
  description:
    'Changes the settings that are sent (JSON merge patch), with `If-Match` only if nobody else has changed them.',
  rules: 'BK7, BK8',
  needs: 'buckets:manage',
  path: BucketParams,
  headers: ['If-Match'],
  body: {
    description: 'The settings that are changed.',
    content: Object.fromEntries(
      patchTypes.map((type) => [
        type,
        { schema: BucketSettingsBody, examples: { 'a quota of 5 GB': { max_bytes: 5_000_000_000 } } },
      ]),
    ),
  },
  responses: {
    200: {
      description: 'The bucket with its new settings.',
      headers: ['Cache-Control', 'ETag'],
      content: {
        'application/json': { schema: ManagedBucket, examples: { bucket: sampleManagedBucket } },
      },
    },
  },
  problems: [...jsonBodyProblems, 'bucket-unknown', 'precondition-failed', 'storage-full'],
  curl: `${curl} -X PATCH ${json} \\
  -d '{"max_bytes": 5000000000}' ${exampleBase}/api/buckets/${sampleManagedBucket.name}`,
}

export const deleteBucket: OperationDescription = {
  operationId: 'deleteBucket',
  tag: 'Buckets',
  summary: 'Delete a bucket',
  description:
    'The bucket is gone at once for everybody: its files, its tokens, its webhooks and its uploads. Its name can be used again. What it held is removed in the background. With `If-Match`, the bucket is deleted only if nobody has changed its settings.',
  rules: 'BK10, BK11',
  needs: 'buckets:manage',
  path: BucketParams,
  headers: ['If-Match'],
  query: BucketRemovalQuery,
  responses: { 204: { description: 'Deleted.' } },
  problems: [
    'parameter-malformed',
    'bucket-unknown',
    'precondition-failed',
    'bucket-not-empty',
    'storage-full',
  ],
  curl: `${curl} -X DELETE '${exampleBase}/api/buckets/${sampleManagedBucket.name}?items=delete'`,
}

export const createBucketToken: OperationDescription = {
  operationId: 'createBucketToken',
  tag: 'Buckets',
  summary: 'Create a token of a bucket',
  description:
    'Creates a token of the bucket. Its scopes are among those of the token of the request. Only this response has the token itself.',
  rules: 'BK12, T6, T9',
  needs: 'tokens:manage',
  ofService: true,
  path: BucketParams,
  body: {
    description: 'The properties of the token.',
    content: {
      'application/json': {
        schema: NewTokenBody,
        examples: { 'read-only': { name: 'website', scopes: ['media:read'] } },
      },
    },
  },
  responses: {
    201: {
      description: 'Created.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: CreatedToken,
          examples: { 'read-only': { ...sampleCreatedToken, bucket: sampleManagedBucket.name } },
        },
      },
    },
  },
  problems: [...jsonBodyProblems, 'bucket-unknown', 'storage-full'],
  curl: `${curl} ${json} \\
  -d '{"name": "website", "scopes": ["media:read"]}' ${exampleBase}/api/buckets/${sampleManagedBucket.name}/tokens`,
}
