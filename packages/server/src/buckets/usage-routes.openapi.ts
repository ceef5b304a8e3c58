import { BucketParams } from '../http/openapi/bucket-schemas.ts'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { sampleManagedBucket, sampleUsage } from '../http/openapi/samples.ts'
import { BucketUsage, ServiceUsage, UsageListQuery, UsageQuery } from '../http/openapi/usage-schemas.ts'

const curl = `curl -H "Authorization: Bearer $SERVICE_TOKEN"`

export const findUsage: OperationDescription = {
  operationId: 'findUsage',
  tag: 'Buckets',
  summary: 'Get the usage of a bucket by day',
  description:
    'Returns a usage for each day: items and bytes at its end, what was added and removed, bytes that were downloaded, and requests by kind. Today is partial.',
  rules: 'US1 to US10',
  needs: 'buckets:manage',
  path: BucketParams,
  query: UsageQuery,
  responses: {
    200: {
      description: 'The usage, the earliest day first.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: BucketUsage,
          examples: { 'one day': { bucket: sampleManagedBucket.name, data: [sampleUsage] } },
        },
      },
    },
  },
  problems: ['parameter-malformed', 'bucket-unknown'],
  curl: `${curl} ${exampleBase}/api/buckets/${sampleManagedBucket.name}/usage`,
}

export const listUsage: OperationDescription = {
  operationId: 'listUsage',
  tag: 'Buckets',
  summary: 'List the usage of all buckets on a day',
  description:
    'Returns the usage of all buckets by name, also of those that were deleted on this day or later.',
  rules: 'US1 to US8, US11',
  needs: 'buckets:manage',
  query: UsageListQuery,
  responses: {
    200: {
      description: 'The usage of some buckets, by name.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: ServiceUsage,
          examples: {
            'one bucket': {
              data: [{ bucket: sampleManagedBucket.name, deleted_at: null, ...sampleUsage }],
              next_cursor: null,
            },
          },
        },
      },
    },
  },
  problems: ['parameter-malformed', 'cursor-malformed'],
  curl: `${curl} ${exampleBase}/api/usage`,
}
